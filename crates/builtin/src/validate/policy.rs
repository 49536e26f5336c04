//! Rules of ValidatingAdmissionPolicies and their bindings: match constraints, and that their CEL expressions
//! compile. Must not know how policies are applied.

use std::collections::{BTreeMap, BTreeSet};

use cel::{Program, Type};

use super::field::{Errors, Field, check_selector};
use super::webhook::check_rule;
use apimachinery::error::FieldError;
use apimachinery::names;
use schema::expressions::{Scope, admission_environment};

const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const ONE_OF_BOTH: &str = "validations or auditAnnotations must contain at least one item";
const NOTES_MAX: usize = 20;
const CONDITIONS_MAX: usize = 64;

pub(super) fn check(kind: &str, object: &Field<'_>, errors: &mut Errors) {
    let spec = object.at("spec");
    match kind {
        "ValidatingAdmissionPolicy" => check_policy(object.at("metadata.name").text(), &spec, errors),
        "ValidatingAdmissionPolicyBinding" => check_binding(&spec, errors),
        _ => {}
    }
}

fn check_policy(name: &str, spec: &Field<'_>, errors: &mut Errors) {
    spec.at("failurePolicy").check_one_of(&["Fail", "Ignore"], errors);
    let params = spec.at("paramKind");
    if params.is_set() {
        check_param_kind(&params, errors);
    }
    let scope = Scope::Policy { has_params: params.is_set() };
    let constraints = spec.at("matchConstraints");
    match constraints.is_set() {
        false => errors.push(constraints.required("")),
        true => {
            check_matching(&constraints, errors);
            constraints.at("resourceRules").check_required(errors);
        }
    }
    check_conditions(spec, scope, errors);
    let defined = check_variables(spec, scope, errors);
    let (validations, notes) = (spec.items("validations"), spec.items("auditAnnotations"));
    if validations.is_empty() && notes.is_empty() {
        errors.push(spec.at("validations").required(ONE_OF_BOTH));
        errors.push(spec.at("auditAnnotations").required(ONE_OF_BOTH));
    }
    validations.iter().for_each(|validation| check_validation(validation, scope, &defined, errors));
    if notes.len() > NOTES_MAX {
        let detail = format!("must not have more than {NOTES_MAX} auditAnnotations");
        errors.push(spec.at("auditAnnotations").invalid(detail));
    }
    let mut seen = BTreeSet::new();
    for note in &notes {
        check_note(name, note, scope, &defined, errors);
        if !seen.insert(note.at("key").text()) {
            errors.push(note.at("key").duplicate());
        }
    }
}

fn check_param_kind(params: &Field<'_>, errors: &mut Errors) {
    let (version, kind) = (params.at("apiVersion"), params.at("kind"));
    version.check_required(errors);
    if kind.is_empty() {
        return errors.push(kind.required(""));
    }
    let faults = names::dns_1035_label(&kind.text().to_lowercase());
    if !faults.is_empty() {
        let note = "may have mixed case, but should otherwise match: ";
        errors.push(kind.invalid(format!("{note}{}", faults.join(","))));
    }
}

fn check_matching(matching: &Field<'_>, errors: &mut Errors) {
    matching.at("matchPolicy").check_one_of(&["Equivalent", "Exact"], errors);
    check_selector(&matching.at("namespaceSelector"), errors);
    check_selector(&matching.at("objectSelector"), errors);
    for list in ["resourceRules", "excludeResourceRules"] {
        for rule in matching.items(list) {
            let mut seen = BTreeSet::new();
            for name in rule.items("resourceNames") {
                name.check_name(names::path_segment, errors);
                if !seen.insert(name.text()) {
                    errors.push(name.duplicate());
                }
            }
            check_rule(&rule, errors);
        }
    }
}

/// The conditions of a policy or a webhook.
pub(super) fn check_conditions(owner: &Field<'_>, scope: Scope, errors: &mut Errors) {
    let conditions = owner.items("matchConditions");
    if conditions.len() > CONDITIONS_MAX {
        let path = owner.at("matchConditions").path.clone();
        errors.push(FieldError::too_many(path, conditions.len(), CONDITIONS_MAX));
    }
    let mut seen = BTreeSet::new();
    for condition in &conditions {
        let (name, expression) = (condition.at("name"), condition.at("expression"));
        match expression.text().trim() {
            "" => errors.push(expression.required("")),
            _ => check_bool(&expression, scope, &BTreeMap::new(), errors),
        }
        match name.is_empty() {
            true => errors.push(name.required("")),
            false => {
                name.check_name(names::label_key, errors);
                if !seen.insert(name.text()) {
                    errors.push(name.duplicate());
                }
            }
        }
    }
}

fn check_variables(spec: &Field<'_>, scope: Scope, errors: &mut Errors) -> BTreeMap<String, Type> {
    let mut defined = BTreeMap::new();
    for variable in spec.items("variables") {
        let (name, expression) = (variable.at("name"), variable.at("expression"));
        if name.text().trim().is_empty() {
            errors.push(name.required("name is not specified"));
        } else if !is_identifier(name.text()) {
            errors.push(name.invalid("must be a valid CEL identifier"));
        }
        if expression.text().trim().is_empty() {
            errors.push(expression.required("expression is not specified"));
            continue;
        }
        let kind = compile(&expression, scope, &defined, errors).map(|program| program.result().clone());
        defined.insert(name.text().to_owned(), kind.unwrap_or(Type::ANY));
    }
    defined
}

fn check_validation(
    validation: &Field<'_>,
    scope: Scope,
    defined: &BTreeMap<String, Type>,
    errors: &mut Errors,
) {
    let (expression, told) = (validation.at("expression"), validation.at("messageExpression"));
    match expression.text().trim() {
        "" => errors.push(expression.required("expression is not specified")),
        _ => check_bool(&expression, scope, defined, errors),
    }
    if !told.text().is_empty() && told.text().trim().is_empty() {
        errors.push(told.invalid("must be non-empty if specified"));
    } else if !told.text().is_empty()
        && let Some(program) = compile(&told, scope.of_message(), defined, errors)
        && !matches!(program.result(), Type::String(_))
    {
        errors.push(told.invalid(format!("must evaluate to string but got {}", program.result())));
    }
    let message = validation.at("message");
    if !message.text().is_empty() && message.text().trim().is_empty() {
        errors.push(message.invalid("must be non-empty if specified"));
    } else if message.text().trim().contains(['\n', '\r']) {
        errors.push(message.invalid("must not contain line breaks"));
    }
    validation.at("reason").check_one_of(&REASONS, errors);
}

fn check_note(
    policy: &str,
    note: &Field<'_>,
    scope: Scope,
    defined: &BTreeMap<String, Type>,
    errors: &mut Errors,
) {
    let (key, expression) = (note.at("key"), note.at("valueExpression"));
    for fault in names::label_key(&format!("{policy}/{}", key.text())) {
        errors.push(FieldError::invalid(key.path.clone(), format!("{policy}/{}", key.text()), fault));
    }
    if expression.text().trim().is_empty() {
        return errors.push(expression.required("valueExpression is not specified"));
    }
    if let Some(program) = compile(&expression, scope, defined, errors)
        && !matches!(program.result(), Type::String(_) | Type::Null | Type::Dyn(_))
    {
        let kind = program.result();
        errors.push(expression.invalid(format!("must evaluate to one of [string null_type] but got {kind}")));
    }
}

fn check_bool(expression: &Field<'_>, scope: Scope, defined: &BTreeMap<String, Type>, errors: &mut Errors) {
    if let Some(program) = compile(expression, scope, defined, errors)
        && !matches!(program.result(), Type::Bool | Type::Dyn(_))
    {
        errors.push(expression.invalid(format!("must evaluate to bool but got {}", program.result())));
    }
}

fn compile(
    expression: &Field<'_>,
    scope: Scope,
    defined: &BTreeMap<String, Type>,
    errors: &mut Errors,
) -> Option<Program> {
    match Program::compile(expression.text(), &admission_environment(scope, defined)) {
        Ok(program) => Some(program),
        Err(issues) => {
            errors.push(expression.invalid(format!("compilation failed: {issues}")));
            None
        }
    }
}

fn is_identifier(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && !matches!(name, "true" | "false" | "null" | "in")
}

fn check_binding(spec: &Field<'_>, errors: &mut Errors) {
    let policy = spec.at("policyName");
    match policy.is_empty() {
        true => errors.push(policy.required("")),
        false => policy.check_name(names::dns_subdomain, errors),
    }
    let params = spec.at("paramRef");
    if params.is_set() {
        check_param_ref(&params, errors);
    }
    let matching = spec.at("matchResources");
    if matching.is_set() {
        check_matching(&matching, errors);
    }
    let actions = spec.items("validationActions");
    let mut seen = BTreeSet::new();
    for action in &actions {
        action.check_one_of(&["Audit", "Deny", "Warn"], errors);
        if !seen.insert(action.text()) {
            errors.push(action.duplicate());
        }
    }
    let all = spec.at("validationActions");
    if seen.contains("Deny") && seen.contains("Warn") {
        errors.push(all.invalid(
            "must not contain both Deny and Warn (repeating the same validation failure information in the API \
             response and headers serves no purpose)",
        ));
    }
    if actions.is_empty() {
        errors.push(all.required("at least one validation action is required"));
    }
}

fn check_param_ref(params: &Field<'_>, errors: &mut Errors) {
    let (name, selector, missing) =
        (params.at("name"), params.at("selector"), params.at("parameterNotFoundAction"));
    const EXCLUSIVE: &str = "name and selector are mutually exclusive";
    if !name.is_empty() {
        name.check_name(names::path_segment, errors);
        if selector.is_set() {
            errors.push(name.forbidden(EXCLUSIVE));
        }
    }
    if selector.is_set() {
        check_selector(&selector, errors);
        if !name.is_empty() {
            errors.push(selector.forbidden(EXCLUSIVE));
        }
    }
    if name.is_empty() && !selector.is_set() {
        errors.push(params.required("one of name or selector must be specified"));
    }
    match missing.is_empty() {
        true => errors.push(missing.required("")),
        false => missing.check_one_of(&["Deny", "Allow"], errors),
    }
}
