//! What is put into a Work: an object with the identity of its template (M3). `Manifest` is the only way into a Work,
//! and its only constructor sets apiVersion, kind, namespace and name from the template, whatever was made of the
//! object before. Knows no binding.

use api::labels::is_ownership_mark;
use api::work::WorkloadTemplate;
use serde_json::{Map, Value};

use super::prune::prune;
use crate::fields::{at, map, pairs, put, remove};
use crate::template::Template;

/// An object on its way to a member.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest(Value);

/// The two maps of metadata that an object may differ in from its template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Labels,
    Annotations,
}

impl Field {
    const ALL: [Field; 2] = [Field::Labels, Field::Annotations];

    fn name(self) -> &'static str {
        match self {
            Field::Labels => "labels",
            Field::Annotations => "annotations",
        }
    }

    /// The label or annotation of an object.
    pub(super) fn value<'o>(self, object: &'o Value, key: &str) -> Option<&'o Value> {
        at(object, &["metadata", self.name(), key])
    }

    /// Removes the label or annotation from an object.
    pub(super) fn remove(self, object: &mut Value, key: &str) {
        remove(object, &["metadata", self.name(), key]);
    }

    /// The keys of the labels or annotations of an object, sorted and joined by commas.
    pub(super) fn keys(self, object: &Value) -> String {
        let mut keys: Vec<&str> = pairs(object, &self.path()).map(|(key, _)| key.as_str()).collect();
        keys.sort_unstable();
        keys.join(",")
    }

    fn path(self) -> [&'static str; 2] {
        ["metadata", self.name()]
    }
}

impl Manifest {
    /// The template as it was customised for a member: by its replicas, its completions and override policies.
    /// Identity and ownership marks are the template's, and nothing is left that belongs to the API server that the
    /// template comes from (uid, ownerReferences, finalizers and the like).
    pub fn new(template: &Template, customised: Value) -> Manifest {
        let original = template.object();
        let mut object = customised;
        if !object.is_object() {
            object = original.clone();
        }
        if !object.get("metadata").is_some_and(Value::is_object) {
            put(&mut object, &["metadata"], original["metadata"].clone());
        }
        identify(&mut object, template, &original);
        Field::ALL.into_iter().for_each(|field| restore_marks(&mut object, &original, field));
        prune(&mut object);
        Manifest(object)
    }

    /// The object as it is now.
    pub fn object(&self) -> &Value {
        &self.0
    }

    /// What a Work says of it.
    pub(super) fn into_workload(self) -> WorkloadTemplate {
        WorkloadTemplate { manifests: vec![self.0] }
    }

    /// Sets labels or annotations.
    pub(super) fn set(&mut self, field: Field, values: &[(&str, &str)]) {
        if let Some(map) = map(&mut self.0, &field.path()) {
            map.extend(values.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value))));
        }
    }

    /// Removes a label or an annotation.
    pub(super) fn unset(&mut self, field: Field, key: &str) {
        field.remove(&mut self.0, key);
    }

    /// The keys of the labels or annotations, sorted and joined by commas.
    pub(super) fn keys(&self, field: Field) -> String {
        field.keys(&self.0)
    }

    /// Removes the spec as a whole.
    pub(super) fn remove_spec(&mut self) {
        remove(&mut self.0, &["spec"]);
    }
}

fn identify(object: &mut Value, template: &Template, original: &Value) {
    let key = &template.key;
    put(object, &["apiVersion"], key.api_version.as_str().into());
    put(object, &["kind"], key.kind.as_str().into());
    put(object, &["metadata", "name"], key.name.as_str().into());
    match key.namespace.as_str() {
        "" => drop(remove(object, &["metadata", "namespace"])),
        namespace => put(object, &["metadata", "namespace"], namespace.into()),
    }
    match at(original, &["metadata", "generateName"]) {
        None => drop(remove(object, &["metadata", "generateName"])),
        Some(prefix) => put(object, &["metadata", "generateName"], prefix.clone()),
    }
}

/// Gives the marks that say who owns an object the values that they have on the template. Labels and annotations that
/// are no map become those of the template.
fn restore_marks(object: &mut Value, original: &Value, field: Field) {
    let of_template = at(original, &field.path());
    if at(object, &field.path()).is_some_and(|marks| !marks.is_object()) {
        put(object, &field.path(), of_template.cloned().unwrap_or_else(|| Map::new().into()));
    }
    let marks: Vec<(&String, &Value)> =
        pairs(original, &field.path()).filter(|(key, _)| is_ownership_mark(key)).collect();
    if marks.is_empty() && at(object, &field.path()).is_none() {
        return;
    }
    let Some(found) = map(object, &field.path()) else { return };
    found.retain(|key, _| !is_ownership_mark(key));
    found.extend(marks.into_iter().map(|(key, value)| (key.clone(), value.clone())));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn template() -> Template {
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": "web", "namespace": "team-a", "uid": "u", "finalizers": ["f"],
                "labels": { "app": "web", "propagationpolicy.karmada.io/permanent-id": "p" },
            },
            "spec": { "replicas": 1 },
        });
        Template::read(&object).expect("a template")
    }

    #[track_caller]
    fn check(customised: Value, expected: Value) {
        let manifest = Manifest::new(&template(), customised.clone());
        assert_eq!(*manifest.object(), expected, "{customised}");
    }

    #[test]
    fn m3_identity_is_the_templates() {
        let labels = json!({ "app": "web", "propagationpolicy.karmada.io/permanent-id": "p" });
        let whole = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "web", "namespace": "team-a", "labels": labels }, "spec": { "replicas": 1 },
        });
        check(template().object(), whole.clone());
        for nothing in
            [json!(null), json!("text"), json!([]), json!({ "metadata": 1, "spec": { "replicas": 1 } })]
        {
            check(nothing, whole.clone());
        }
        let bare = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "web", "namespace": "team-a",
                "labels": { "propagationpolicy.karmada.io/permanent-id": "p" } },
            "roleRef": { "name": "cluster-admin" },
        });
        check(
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": { "name": "root", "generateName": "x-", "uid": "other", "ownerReferences": [{}],
                    "resourceVersion": "1", "deletionTimestamp": "now", "finalizers": ["theirs"] },
                "roleRef": { "name": "cluster-admin" },
            }),
            bare,
        );
    }

    #[test]
    fn m3_marks_are_the_templates() {
        let forged = json!({
            "app": "other", "propagationpolicy.karmada.io/permanent-id": "q", "karmada.io/managed": "false",
            "work.karmada.io/permanent-id": "w",
        });
        let mut object = template().object();
        object["metadata"]["labels"] = forged;
        object["metadata"]["annotations"] = json!({
            "note": "n", "work.karmada.io/name": "another", "longshore.io/pin": "{}",
            "resourcetemplate.karmada.io/uid": "x", "work.karmada.io/conflict-resolution": "overwrite",
        });
        let manifest = Manifest::new(&template(), object);
        let metadata = &manifest.object()["metadata"];
        assert_eq!(
            metadata["labels"],
            json!({ "app": "other", "propagationpolicy.karmada.io/permanent-id": "p" })
        );
        assert_eq!(
            metadata["annotations"],
            json!({ "note": "n", "work.karmada.io/conflict-resolution": "overwrite" })
        );
    }
}
