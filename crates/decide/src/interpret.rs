//! The built-in resource interpreters: replicas and requirements, health, dependencies and status reflection of
//! built-in kinds. Interpreter scripts for other kinds are run elsewhere.

mod aggregate;
mod dependencies;
mod health;
mod pod;
mod reflect;

use api::binding::{Component, ReplicaRequirements};
use api::labels;
use serde_json::Value;

pub use aggregate::aggregate;
pub use dependencies::dependencies;
pub use health::{has_health, health};
pub use reflect::reflect;

use crate::fields::{at, integer, put, text};

/// What the kind's interpreter says about a template.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Interpretation {
    /// How many replicas.
    pub replicas: i32,
    /// What one of them needs.
    pub requirements: Option<ReplicaRequirements>,
    /// Parts with replicas of their own.
    pub components: Vec<Component>,
    /// The value of the policy's priority class, once it is looked up.
    pub schedule_priority: Option<i32>,
}

/// Kinds that are understood without a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
    CronJob,
    Pod,
    Service,
    Ingress,
    ServiceImport,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    HorizontalPodAutoscaler,
}

impl Kind {
    fn named(api_version: &str, kind: &str) -> Option<Kind> {
        Some(match (api_version, kind) {
            ("apps/v1", "Deployment") => Kind::Deployment,
            ("apps/v1", "ReplicaSet") => Kind::ReplicaSet,
            ("apps/v1", "StatefulSet") => Kind::StatefulSet,
            ("apps/v1", "DaemonSet") => Kind::DaemonSet,
            ("batch/v1", "Job") => Kind::Job,
            ("batch/v1", "CronJob") => Kind::CronJob,
            ("v1", "Pod") => Kind::Pod,
            ("v1", "Service") => Kind::Service,
            ("networking.k8s.io/v1", "Ingress") => Kind::Ingress,
            ("multicluster.x-k8s.io/v1alpha1", "ServiceImport") => Kind::ServiceImport,
            ("v1", "PersistentVolume") => Kind::PersistentVolume,
            ("v1", "PersistentVolumeClaim") => Kind::PersistentVolumeClaim,
            ("policy/v1", "PodDisruptionBudget") => Kind::PodDisruptionBudget,
            ("autoscaling/v2", "HorizontalPodAutoscaler") => Kind::HorizontalPodAutoscaler,
            _ => return None,
        })
    }

    fn of(object: &Value) -> Option<Kind> {
        Kind::named(text(object, &["apiVersion"]), text(object, &["kind"]))
    }

    /// Where its replicas stand; none if a cluster cannot be given a number of them.
    fn replicas_field(self) -> Option<&'static str> {
        match self {
            Kind::Deployment | Kind::ReplicaSet | Kind::StatefulSet => Some("replicas"),
            Kind::Job => Some("parallelism"),
            _ => None,
        }
    }

    /// Where its pods are described.
    fn pod_path(self) -> Option<&'static [&'static str]> {
        match self {
            Kind::Pod => Some(&["spec"]),
            Kind::Deployment | Kind::ReplicaSet | Kind::StatefulSet | Kind::DaemonSet | Kind::Job => {
                Some(&["spec", "template", "spec"])
            }
            Kind::CronJob => Some(&["spec", "jobTemplate", "spec", "template", "spec"]),
            _ => None,
        }
    }
}

/// True for kinds that are understood without a script.
pub fn is_understood(api_version: &str, kind: &str) -> bool {
    Kind::named(api_version, kind).is_some()
}

/// True for built-in kinds whose replicas can be set.
pub fn has_replicas(api_version: &str, kind: &str) -> bool {
    Kind::named(api_version, kind).is_some_and(|kind| kind.replicas_field().is_some())
}

/// How many replicas an object wants and what each needs; nothing for kinds without pods of their own.
pub fn replicas(object: &Value) -> (i32, Option<ReplicaRequirements>) {
    let Some(kind) = Kind::of(object) else { return (0, None) };
    let number = match kind {
        Kind::Deployment | Kind::ReplicaSet | Kind::StatefulSet => integer(object, &["spec", "replicas"]),
        Kind::Job => {
            let parallelism = integer(object, &["spec", "parallelism"]).unwrap_or(0);
            Some(parallelism.min(integer(object, &["spec", "completions"]).unwrap_or(parallelism)))
        }
        Kind::Pod => Some(1),
        _ => return (0, None),
    };
    let requirements = kind.pod_path().and_then(|path| at(object, path)).and_then(pod::requirements);
    (i32::try_from(number.unwrap_or(0).max(0)).unwrap_or(i32::MAX), requirements)
}

/// Everything the binding wants to know about an object.
pub fn interpretation(object: &Value) -> Interpretation {
    let (replicas, requirements) = replicas(object);
    Interpretation { replicas, requirements, ..Interpretation::default() }
}

/// Sets the replicas of an object. Only an existing field is changed, as in Karmada.
pub fn revise_replicas(object: &mut Value, replicas: i32) {
    if let Some(field) = Kind::of(object).and_then(Kind::replicas_field)
        && at(object, &["spec", field]).is_some()
    {
        put(object, &["spec", field], replicas.into());
    }
}

/// How many replicas an object says to run; none if it does not say.
pub fn told_replicas(object: &Value) -> Option<i32> {
    let field = Kind::of(object)?.replicas_field()?;
    i32::try_from(integer(object, &["spec", field])?).ok()
}

/// True for a Deployment whose replicas the member decides.
pub fn retains_replicas(manifest: &Value) -> bool {
    Kind::of(manifest) == Some(Kind::Deployment)
        && text(manifest, &["metadata", "labels", labels::RETAIN_REPLICAS]) == labels::TRUE
}

/// Keeps in a manifest what the member decides. Server-side apply leaves fields alone that the manifest does
/// not name (C4), so only the replicas of a Deployment that says so must be taken over.
pub fn retain(manifest: &mut Value, member: &Value) {
    if retains_replicas(manifest)
        && let Some(replicas) = at(member, &["spec", "replicas"])
    {
        put(manifest, &["spec", "replicas"], replicas.clone());
    }
}

#[cfg(test)]
mod tests;
