//! Keys of the objects that a member reconciles. The order of the kinds is the order of work: children before the
//! owners that count them.

use std::sync::Arc;

/// A kind that a member looks after. Kinds that come first are worked on first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Node,
    Pod,
    Volume,
    Claim,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
    Deployment,
    Budget,
    Definition,
    /// A kind that only stage files know, by its place among them.
    Staged(u8),
}

/// How the API calls a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub api_version: String,
    pub kind: String,
    pub plural: String,
}

/// The kinds with code of their own.
const BUILT_IN: [(Kind, &str, &str, &str); 11] = [
    (Kind::Node, "v1", "Node", "nodes"),
    (Kind::Pod, "v1", "Pod", "pods"),
    (Kind::Volume, "v1", "PersistentVolume", "persistentvolumes"),
    (Kind::Claim, "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    (Kind::ReplicaSet, "apps/v1", "ReplicaSet", "replicasets"),
    (Kind::StatefulSet, "apps/v1", "StatefulSet", "statefulsets"),
    (Kind::DaemonSet, "apps/v1", "DaemonSet", "daemonsets"),
    (Kind::Job, "batch/v1", "Job", "jobs"),
    (Kind::Deployment, "apps/v1", "Deployment", "deployments"),
    (Kind::Budget, "policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    (Kind::Definition, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions"),
];

impl Kind {
    /// The kinds with code of their own, and how the API calls them.
    pub fn built_in() -> impl Iterator<Item = (Kind, Named)> {
        BUILT_IN.iter().map(|(kind, api_version, name, plural)| {
            let [api_version, name, plural] = [*api_version, *name, *plural].map(str::to_owned);
            (*kind, Named { api_version, kind: name, plural })
        })
    }

    /// The kind with code of its own behind an owner reference or a stage file.
    pub fn of(api_version: &str, kind: &str) -> Option<Kind> {
        let group = |text: &str| text.split_once('/').map_or(String::new(), |(group, _)| group.to_owned());
        let same = |row: &&(Kind, &str, &str, &str)| row.2 == kind && group(row.1) == group(api_version);
        BUILT_IN.iter().find(same).map(|row| row.0)
    }
}

/// One object: its kind and `namespace/name`, or `name` where the kind has no namespaces.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub kind: Kind,
    pub path: Arc<str>,
}

impl Key {
    /// The key of an object; an empty namespace means none.
    pub fn new(kind: Kind, namespace: &str, name: &str) -> Key {
        let path = match namespace {
            "" => name.into(),
            _ => format!("{namespace}/{name}").into(),
        };
        Key { kind, path }
    }

    /// The namespace, empty for objects without one.
    pub fn namespace(&self) -> &str {
        self.path.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.path.split_once('/').map_or(&*self.path, |(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_come_before_those_who_count_them() {
        assert!(Kind::Pod < Kind::ReplicaSet && Kind::ReplicaSet < Kind::Deployment);
        assert!(Kind::Claim < Kind::StatefulSet && Kind::Pod < Kind::Budget);
    }

    #[test]
    fn owner_references_are_found_in_any_version_of_their_group() {
        assert_eq!(Kind::of("apps/v1beta1", "ReplicaSet"), Some(Kind::ReplicaSet));
        assert_eq!(Kind::of("v1", "Pod"), Some(Kind::Pod));
        assert_eq!(Kind::of("example.io/v1", "Pod"), None);
    }

    #[test]
    fn a_key_knows_its_parts() {
        let pod = Key::new(Kind::Pod, "default", "a");
        assert_eq!((pod.namespace(), pod.name()), ("default", "a"));
        let node = Key::new(Kind::Node, "", "n");
        assert_eq!((node.namespace(), node.name()), ("", "n"));
    }
}
