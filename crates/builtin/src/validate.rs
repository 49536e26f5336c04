//! Validation of built-in kinds beyond the schema, in kube-apiserver's words and order, for the kinds and fields that
//! users meet most. Metadata is validated elsewhere. Must not know about HTTP or storage.

use serde_json::Value;

use apimachinery::error::FieldError;

mod access;
mod autoscaling;
mod batch;
mod config;
mod container;
mod field;
mod network;
mod pod;
mod policy;
mod probe;
mod resources;
mod schedule;
mod scheduling;
mod service;
mod storage;
mod volume;
mod webhook;
mod workload;

use field::{Errors, Field};

#[cfg(test)]
mod tests;

/// What is wrong with an object of a built-in kind; `old` is what an update replaces. Expects defaults to
/// be filled in and the schema to hold.
pub fn validate(group: &str, kind: &str, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let object = Field::root(new);
    match group {
        "" => core(kind, &object, old, &mut errors),
        "apps" => workload::check(kind, &object, old, &mut errors),
        "batch" => batch::check(kind, &object, old, &mut errors),
        "autoscaling" => autoscaling::check(kind, &object, &mut errors),
        "policy" => autoscaling::check_disruption_budget(&object, &mut errors),
        "networking.k8s.io" | "discovery.k8s.io" => network::check(kind, &object, old, &mut errors),
        "rbac.authorization.k8s.io" => access::check(kind, &object, old, &mut errors),
        "storage.k8s.io" => storage::check_class(kind, &object, old, &mut errors),
        "scheduling.k8s.io" | "coordination.k8s.io" => config::check_rank(kind, &object, old, &mut errors),
        "admissionregistration.k8s.io" => {
            webhook::check(kind, &object, &mut errors);
            policy::check(kind, &object, &mut errors);
        }
        _ => {}
    }
    errors
}

fn core(kind: &str, object: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    match kind {
        "Pod" => pod::check(object, old, errors),
        "PodTemplate" => pod::check_template(&object.at("template"), errors),
        "ReplicationController" => workload::check_replication_controller(object, errors),
        "Service" => service::check(object, old, errors),
        "Endpoints" => network::check_endpoints(object, errors),
        "ConfigMap" => config::check_config_map(object, old, errors),
        "Secret" => config::check_secret(object, old, errors),
        "Event" => config::check_event(object, errors),
        "PersistentVolume" => storage::check_volume(object, old, errors),
        "PersistentVolumeClaim" => storage::check_claim(object, old, errors),
        "ResourceQuota" => resources::check_quota(object, errors),
        "LimitRange" => resources::check_limit_range(object, errors),
        _ => {}
    }
}
