//! Rules of resource names and amounts: containers, quotas and limit ranges.
//! Must not know who consumes them.

use std::collections::BTreeSet;

use super::field::{Errors, Field, NON_NEGATIVE};
use apimachinery::error::FieldError;
use apimachinery::names;
use apimachinery::quantity::Quantity;

const CONTAINER: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
const QUOTA: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
    "storage",
];

/// What a container asks for and is limited to.
pub(super) fn check_requirements(resources: &Field<'_>, errors: &mut Errors) {
    for (name, limit) in resources.entries("limits") {
        check_container_resource(name, &limit, errors);
        check_quantity(name, &limit, errors);
    }
    for (name, request) in resources.entries("requests") {
        check_container_resource(name, &request, errors);
        check_quantity(name, &request, errors);
        check_within_limit(resources, name, &request, errors);
    }
}

fn check_within_limit(resources: &Field<'_>, name: &str, request: &Field<'_>, errors: &mut Errors) {
    let may_overcommit = !name.contains('/') && !name.starts_with("hugepages-");
    let limit = resources.at("limits").value.get(name).map(Quantity::from_value);
    let Ok(asked) = Quantity::from_value(request.value) else { return };
    let refuse = |relation: &str, limit: Quantity| {
        let why = format!("must be {relation} {name} limit of {limit}");
        FieldError::invalid(resources.at("requests").path, asked.to_string(), why)
    };
    match limit {
        Some(Ok(limit)) if !may_overcommit && asked != limit => errors.push(refuse("equal to", limit)),
        Some(Ok(limit)) if asked > limit => errors.push(refuse("less than or equal to", limit)),
        None if !may_overcommit => {
            errors
                .push(resources.at("limits").required("Limit must be set for non overcommitable resources"));
        }
        _ => {}
    }
}

fn check_container_resource(name: &str, place: &Field<'_>, errors: &mut Errors) {
    check_resource_name(name, place, &CONTAINER, "must be a standard resource for containers", errors);
}

/// A name is a standard one or has a domain; `standard` are those that fit here.
fn check_resource_name(name: &str, place: &Field<'_>, standard: &[&str], misfit: &str, errors: &mut Errors) {
    let refuse = |why: String| FieldError::invalid(place.path.clone(), name, why);
    errors.extend(names::label_key(name).into_iter().map(refuse));
    if name.contains('/') || standard.contains(&name) || name.starts_with("hugepages-") {
        return;
    }
    if !CONTAINER.contains(&name) && !QUOTA.contains(&name) && !name.starts_with("count/") {
        errors.push(refuse(String::from("must be a standard resource type or fully qualified")));
    }
    errors.push(refuse(misfit.to_owned()));
}

/// No less than nothing, and whole where a resource cannot be split.
fn check_quantity(name: &str, place: &Field<'_>, errors: &mut Errors) {
    let Ok(quantity) = Quantity::from_value(place.value) else {
        return errors.push(place.invalid("must be a quantity"));
    };
    let refuse = |why: &str| FieldError::invalid(place.path.clone(), quantity.to_string(), why);
    if quantity.is_negative() {
        errors.push(refuse(NON_NEGATIVE));
    }
    let counted =
        ["pods", "services", "secrets", "configmaps", "persistentvolumeclaims", "replicationcontrollers"];
    if (name.contains('/') || counted.contains(&name)) && !quantity.is_whole() {
        errors.push(refuse("must be an integer"));
    }
}

/// Refuses an amount of nothing or less.
pub(super) fn check_positive(place: &Field<'_>, errors: &mut Errors) {
    if let Ok(quantity) = Quantity::from_value(place.value)
        && (quantity.is_zero() || quantity.is_negative())
    {
        errors.push(FieldError::invalid(
            place.path.clone(),
            quantity.to_string(),
            "must be greater than zero",
        ));
    }
}

pub(super) fn check_quota(object: &Field<'_>, errors: &mut Errors) {
    let spec = object.at("spec");
    for (name, hard) in spec.entries("hard") {
        check_resource_name(name, &hard, &QUOTA, "must be a standard resource for quota", errors);
        check_quantity(name, &hard, errors);
    }
    let known = [
        "Terminating",
        "NotTerminating",
        "BestEffort",
        "NotBestEffort",
        "PriorityClass",
        "CrossNamespacePodAffinity",
    ];
    for scope in spec.items("scopes") {
        if !known.contains(&scope.text()) {
            errors.push(spec.at("scopes").invalid("unsupported scope"));
        }
    }
}

pub(super) fn check_limit_range(object: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for limit in object.items("spec.limits") {
        let kind = limit.at("type");
        if !seen.insert(kind.text()) {
            errors.push(kind.duplicate());
        }
        if kind.text() == "Pod" {
            for field in ["default", "defaultRequest"].map(|field| limit.at(field)) {
                if !field.is_empty() {
                    errors.push(field.forbidden("may not be specified when `type` is 'Pod'"));
                }
            }
        }
        check_bounds(&limit, errors);
    }
}

/// Smallest, default request, default and largest amount must not cross.
fn check_bounds(limit: &Field<'_>, errors: &mut Errors) {
    let maps = ["max", "min", "default", "defaultRequest"];
    let names: BTreeSet<&str> =
        maps.iter().flat_map(|map| limit.entries(map)).map(|(name, _)| name).collect();
    let rules = [
        ("min", "max", "min", "min value", "max value", "min"),
        ("min", "defaultRequest", "defaultRequest", "min value", "default request value", "defaultRequest"),
        ("defaultRequest", "max", "defaultRequest", "default request value", "max value", "defaultRequest"),
        (
            "defaultRequest",
            "default",
            "defaultRequest",
            "default request value",
            "default limit value",
            "defaultRequest",
        ),
        ("min", "default", "default", "min value", "default value", "min"),
        ("default", "max", "default", "default value", "max value", "max"),
    ];
    for name in names {
        let quantity = |map: &str| Quantity::from_value(limit.at(map).value.get(name)?).ok();
        for (low, high, place, low_words, high_words, printed) in rules {
            let (Some(lower), Some(upper)) = (quantity(low), quantity(high)) else { continue };
            if lower > upper {
                let shown = quantity(printed).unwrap_or(lower).to_string();
                let why = format!("{low_words} {lower} is greater than {high_words} {upper}");
                errors.push(FieldError::invalid(format!("{}[{name}]", limit.at(place).path), shown, why));
            }
        }
    }
}
