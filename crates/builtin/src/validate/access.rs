//! Rules of roles and their bindings. Must not know who is allowed what.

use serde_json::{Value, json};

use super::field::{Errors, Field, same};
use apimachinery::error::FieldError;
use apimachinery::names;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn check(kind: &str, object: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    match kind {
        "Role" | "ClusterRole" => {
            object.items("rules").iter().for_each(|rule| check_rule(rule, kind == "Role", errors));
        }
        "RoleBinding" => check_binding(object, &["Role", "ClusterRole"], old, errors),
        "ClusterRoleBinding" => check_binding(object, &["ClusterRole"], old, errors),
        _ => {}
    }
}

fn check_rule(rule: &Field<'_>, namespaced: bool, errors: &mut Errors) {
    if rule.at("verbs").is_empty() {
        errors.push(rule.at("verbs").required("verbs must contain at least one value"));
    }
    let urls = rule.at("nonResourceURLs");
    if !urls.is_empty() {
        let others = ["apiGroups", "resources", "resourceNames"];
        if namespaced {
            errors.push(urls.invalid("namespaced rules cannot apply to non-resource URLs"));
        }
        if others.iter().any(|other| !rule.at(other).is_empty()) {
            errors.push(urls.invalid("rules cannot apply to both regular resources and non-resource URLs"));
        }
        return;
    }
    if rule.at("apiGroups").is_empty() {
        errors.push(rule.at("apiGroups").required("resource rules must supply at least one api group"));
    }
    if rule.at("resources").is_empty() {
        errors.push(rule.at("resources").required("resource rules must supply at least one resource"));
    }
}

fn check_binding(binding: &Field<'_>, kinds: &[&str], old: Option<&Value>, errors: &mut Errors) {
    let role = binding.at("roleRef");
    if let Some(old) = old
        && !same(role.value, &old["roleRef"])
    {
        let printed = json!({ "APIGroup": role.value["apiGroup"], "Kind": role.value["kind"], "Name": role.value["name"] });
        errors.push(FieldError::invalid(role.path.clone(), printed, "cannot change roleRef"));
    }
    role.at("apiGroup").check_one_of(&[GROUP], errors);
    role.at("kind").check_one_of(kinds, errors);
    let name = role.at("name");
    match name.is_empty() {
        true => errors.push(name.required("")),
        false => name.check_name(names::path_segment, errors),
    }
    let namespaced = kinds.contains(&"Role");
    binding.items("subjects").iter().for_each(|subject| check_subject(subject, namespaced, errors));
}

fn check_subject(subject: &Field<'_>, namespaced: bool, errors: &mut Errors) {
    let (name, group) = (subject.at("name"), subject.at("apiGroup"));
    name.check_required(errors);
    match subject.at("kind").text() {
        "ServiceAccount" => {
            name.check_optional_name(names::dns_subdomain, errors);
            if !group.is_empty() {
                errors.push(group.not_supported(&[""]));
            }
            if !namespaced && subject.at("namespace").is_empty() {
                errors.push(subject.at("namespace").required(""));
            }
        }
        "User" | "Group" => group.check_one_of(&[GROUP], errors),
        _ => errors.push(subject.at("kind").not_supported(&["ServiceAccount", "User", "Group"])),
    }
}
