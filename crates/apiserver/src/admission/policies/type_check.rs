//! Type checking of policies: checks the expressions of a policy against the schemas of the kinds that it matches.
//! Findings are written to `status.typeChecking` and have no other effect.

use std::collections::BTreeMap;

use cel::{Environment, Program, Type};
use serde_json::{Value, json};

use crate::registry::{Registry, Resource};
use crate::storage::text;
use schema::expressions::{Scope, admission_environment, shaped};

/// Of more kinds than this no more are looked at.
const KINDS_MAX: usize = 10;

/// What may be wrong with each expression of a policy, and for which kinds.
pub(crate) fn type_warnings(policy: &Value, registry: &Registry) -> Vec<Value> {
    let spec = &policy["spec"];
    let params = &spec["paramKind"];
    let params = registry
        .by_kind(text(params, "/apiVersion"), text(params, "/kind"))
        .map(|found| shaped(&found.kind, &found.schema));
    let kinds: Vec<(String, Environment)> = kinds(spec, registry)
        .into_iter()
        .map(|kind| {
            let described = format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind);
            (described, environment(spec, &shaped(&kind.kind, &kind.schema), params.as_ref()))
        })
        .collect();
    let mut found = Vec::new();
    for (index, validation) in spec["validations"].as_array().into_iter().flatten().enumerate() {
        for key in ["expression", "messageExpression"] {
            let Some(source) = validation[key].as_str().filter(|source| !source.is_empty()) else { continue };
            let described = kinds.iter().filter_map(|(kind, environment)| {
                let issues = Program::compile(source, environment).err()?;
                Some(format!("{kind}: compilation failed: {issues}\n"))
            });
            let described: Vec<String> = described.collect();
            if !described.is_empty() {
                let field = format!("spec.validations[{index}].{key}");
                found.push(json!({ "fieldRef": field, "warning": described.join("\n") }));
            }
        }
    }
    found
}

/// The kinds that the rules of a policy name, by group, version and kind. Wildcards name none.
fn kinds<'a>(spec: &Value, registry: &'a Registry) -> Vec<&'a Resource> {
    let mut kinds: BTreeMap<(&str, &str, &str), &Resource> = BTreeMap::new();
    for rule in spec["matchConstraints"]["resourceRules"].as_array().into_iter().flatten() {
        let said = |key: &str| -> Vec<&str> {
            rule[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
        };
        let (groups, versions) = (said("apiGroups"), said("apiVersions"));
        if groups.iter().chain(&versions).any(|word| word.contains('*')) {
            continue;
        }
        let resources = said("resources");
        let named = groups.iter().flat_map(|group| versions.iter().map(move |version| (group, version)));
        for (group, version) in named {
            for resource in resources.iter().filter_map(|one| registry.resource(group, version, one)) {
                if kinds.len() < KINDS_MAX {
                    kinds.insert((&resource.group, &resource.version, &resource.kind), resource);
                }
            }
        }
    }
    kinds.into_values().collect()
}

/// What expressions about objects of this type may use.
fn environment(spec: &Value, object: &Type, params: Option<&Type>) -> Environment {
    let scope = Scope::Policy { has_params: params.is_some() };
    let typed = |defined: &BTreeMap<String, Type>| {
        let mut environment = admission_environment(scope, defined);
        let known = [("object", Some(object)), ("oldObject", Some(object)), ("params", params)];
        for (name, kind) in known.into_iter().filter_map(|(name, kind)| Some((name, kind?))) {
            environment.variables.insert(name.to_owned(), kind.clone());
        }
        environment
    };
    let mut defined = BTreeMap::new();
    for variable in spec["variables"].as_array().into_iter().flatten() {
        let program = Program::compile(text(variable, "/expression"), &typed(&defined));
        let kind = program.map_or(Type::ANY, |program| program.result().clone());
        defined.insert(text(variable, "/name").to_owned(), kind);
    }
    typed(&defined)
}
