//! Dispatch: may a manifest be written to its member now, and what happens to the member's object when its Work is
//! deleted? Every writer to members asks here, so that suspension and foreign objects are never forgotten.

use std::fmt;

use api::cluster::READY;
use api::{Cluster, ConditionStatus, Work, annotations, labels};
use serde::Serialize;
use serde_json::Value;

use super::foreign::is_outside;
use crate::conditions;
use crate::fields::{pairs, text};
use crate::interpret::retain;

/// What is done with one manifest of a Work.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Dispatch {
    /// Nothing at all: the Work is suspended (U3).
    Held,
    /// It is applied.
    Apply(Value),
    /// The member has such an object of its own (C4).
    Refused(Conflict),
}

/// An object in a member that is not ours to change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Conflict {
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Conflict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Conflict { kind, namespace, name } = self;
        write!(
            formatter,
            "resource(kind={kind}, {namespace}/{name}) already exists in the cluster and is not managed; \
             set conflictResolution to Overwrite in the policy to take it over"
        )
    }
}

/// What becomes of the member's object when its Work goes; suspension has no say (U4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "type")]
pub enum Withdraw {
    /// It is deleted.
    Delete,
    /// It stays, without our marks.
    Release {
        /// Labels to remove.
        labels: Vec<String>,
        /// Annotations to remove.
        annotations: Vec<String>,
    },
    /// There is nothing to do: it is gone, or it was never ours.
    Nothing,
    /// The cluster cannot be reached and is going away itself.
    Abandoned,
    /// The cluster cannot be reached now.
    Wait,
}

/// Decides about one manifest, given the member's object as it is now.
pub fn dispatch(work: &Work, manifest: &Value, member: Option<&Value>) -> Dispatch {
    if work.spec.suspend_dispatching == Some(true) || is_suppressed(work) {
        return Dispatch::Held;
    }
    let mut manifest = manifest.clone();
    if let Some(member) = member {
        let resolution = text(&manifest, &["metadata", "annotations", annotations::CONFLICT_RESOLUTION]);
        if !is_managed(member) && resolution != annotations::CONFLICT_OVERWRITE {
            let part = |path: &[&str]| text(member, path).to_owned();
            return Dispatch::Refused(Conflict {
                kind: part(&["kind"]),
                namespace: part(&["metadata", "namespace"]),
                name: part(&["metadata", "name"]),
            });
        }
        retain(&mut manifest, member);
    }
    Dispatch::Apply(manifest)
}

/// True for Works of earlier Karmadas that only collect what a member has, and bring nothing there.
fn is_suppressed(work: &Work) -> bool {
    work.metadata.label(labels::INSTRUCTION) == labels::SUPPRESSED
}

/// Decides what becomes of the member's object of a Work that is being deleted.
pub fn withdraw(work: &Work, member: Option<&Value>, cluster: &Cluster) -> Withdraw {
    let ready = conditions::status(&cluster.status.conditions, READY) == Some(ConditionStatus::True);
    let preserve = work.spec.preserve_resources_on_deletion == Some(true);
    if !ready {
        return match cluster.metadata.deletion_timestamp {
            Some(_) => Withdraw::Abandoned,
            None => Withdraw::Wait,
        };
    }
    let is_ours =
        |member: &&Value| is_managed(member) && !is_of_another(work, member) && !is_outside(work, member);
    match member.filter(is_ours) {
        None => Withdraw::Nothing,
        Some(member) if preserve => {
            Withdraw::Release { labels: marks(member, "labels"), annotations: marks(member, "annotations") }
        }
        Some(_) => Withdraw::Delete,
    }
}

/// True for objects that the control plane wrote.
pub(super) fn is_managed(object: &Value) -> bool {
    text(object, &["metadata", "labels", labels::MANAGED]) == labels::TRUE
}

/// True for objects that another Work brought, which may happen where override policies change names.
fn is_of_another(work: &Work, object: &Value) -> bool {
    let mark = |key: &str| text(object, &["metadata", "annotations", key]).to_owned();
    let (namespace, name) = (mark(annotations::WORK_NAMESPACE), mark(annotations::WORK_NAME));
    !name.is_empty() && (namespace, name) != (work.metadata.namespace.clone(), work.metadata.name.clone())
}

/// The keys that the control plane put on an object.
fn marks(object: &Value, field: &str) -> Vec<String> {
    let keys = pairs(object, &["metadata", field]).map(|(key, _)| key);
    keys.filter(|key| *key == labels::MANAGED || labels::is_bookkeeping(key)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(labels: Value, annotations: Value) -> Value {
        let metadata = json!({"name": "n", "namespace": "ns", "labels": labels, "annotations": annotations});
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"replicas": 3}})
    }

    fn work(suspended: bool, preserve: bool) -> Work {
        let mut work = Work::default();
        work.spec.suspend_dispatching = Some(suspended);
        work.spec.preserve_resources_on_deletion = Some(preserve);
        work
    }

    fn cluster(ready: &str, deleting: bool) -> Cluster {
        let mut cluster = Cluster::default();
        let condition = json!([{"type": "Ready", "status": ready, "reason": "", "message": ""}]);
        cluster.status.conditions = serde_json::from_value(condition).expect("conditions");
        cluster.metadata.deletion_timestamp =
            deleting.then(|| "2026-01-01T00:00:00Z".parse().expect("a time"));
        cluster
    }

    #[test]
    fn u3_nothing_is_written_while_suspended_whatever_the_member_has() {
        let manifest = object(json!({"karmada.io/managed": "true"}), json!({}));
        let drifted = object(json!({"karmada.io/managed": "true", "extra": "x"}), json!({}));
        for member in [None, Some(&manifest), Some(&drifted)] {
            assert_eq!(dispatch(&work(true, false), &manifest, member), Dispatch::Held);
            assert_eq!(dispatch(&work(false, false), &manifest, member), Dispatch::Apply(manifest.clone()));
        }
    }

    #[test]
    fn c7_a_work_that_only_collects_brings_nothing() {
        let mut collecting = work(false, false);
        let suppressed = ("propagation.karmada.io/instruction".to_owned(), "suppressed".to_owned());
        collecting.metadata.labels.extend([suppressed]);
        assert_eq!(dispatch(&collecting, &object(json!({}), json!({})), None), Dispatch::Held);
    }

    #[test]
    fn c4_a_foreign_object_is_refused_unless_it_may_be_taken_over() {
        let foreign = object(json!({}), json!({}));
        let manifest = |word: &str| object(json!({}), json!({"work.karmada.io/conflict-resolution": word}));
        let refused = dispatch(&work(false, false), &manifest("abort"), Some(&foreign));
        let Dispatch::Refused(conflict) = refused else { panic!("not ours") };
        assert!(
            conflict.to_string().starts_with("resource(kind=Deployment, ns/n) already exists in the cluster")
        );
        assert!(matches!(
            dispatch(&work(false, false), &manifest("overwrite"), Some(&foreign)),
            Dispatch::Apply(_)
        ));
    }

    #[test]
    fn u4_a_work_that_goes_takes_its_object_along_or_leaves_it_clean() {
        let ours = object(
            json!({"app": "web", "karmada.io/managed": "true", "work.karmada.io/permanent-id": "x"}),
            json!({"note": "n", "resourcetemplate.karmada.io/uid": "u"}),
        );
        let foreign = object(json!({}), json!({}));
        let ready = cluster("True", false);
        assert_eq!(withdraw(&work(true, false), Some(&ours), &ready), Withdraw::Delete);
        assert_eq!(withdraw(&work(false, false), Some(&foreign), &ready), Withdraw::Nothing);
        assert_eq!(withdraw(&work(false, false), None, &ready), Withdraw::Nothing);
        assert_eq!(
            withdraw(&work(false, true), Some(&ours), &ready),
            Withdraw::Release {
                labels: vec!["karmada.io/managed".to_owned(), "work.karmada.io/permanent-id".to_owned()],
                annotations: vec!["resourcetemplate.karmada.io/uid".to_owned()],
            }
        );
        let renamed = json!({"work.karmada.io/namespace": "karmada-es-m", "work.karmada.io/name": "another"});
        let of_another = object(json!({"karmada.io/managed": "true"}), renamed);
        for preserve in [false, true] {
            assert_eq!(withdraw(&work(false, preserve), Some(&of_another), &ready), Withdraw::Nothing);
        }
        let mut of_another_namespace = work(false, false);
        let namespace = ("resourcebinding.karmada.io/namespace".to_owned(), "team-a".to_owned());
        of_another_namespace.metadata.annotations.extend([namespace]);
        assert_eq!(
            withdraw(&of_another_namespace, Some(&ours), &ready),
            Withdraw::Nothing,
            "M3: it is another object"
        );
        assert_eq!(withdraw(&work(false, false), Some(&ours), &cluster("False", false)), Withdraw::Wait);
        assert_eq!(withdraw(&work(false, false), Some(&ours), &cluster("False", true)), Withdraw::Abandoned);
    }
}
