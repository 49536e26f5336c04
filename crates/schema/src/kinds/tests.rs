//! The committed table against well-known facts about Kubernetes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{all, definition, definition_named, find, index_named, name};
use crate::structural::builtin::definitions_count;
use crate::structural::{ListType, Schema, SchemaRef, Type};

fn field(definition: &str, path: &str) -> Schema {
    let mut schema = definition_named(definition).unwrap();
    for part in path.split('.') {
        schema = match part {
            "[]" => schema.items.as_ref().unwrap(),
            "{}" => schema.values.as_ref().unwrap(),
            name => schema.properties.get(name).unwrap_or_else(|| panic!("{definition} has no {path}")),
        };
    }
    schema.clone()
}

#[test]
fn every_group_to_serve_has_its_kinds() {
    let count = |group, version| all().iter().filter(|k| k.group == group && k.version == version).count();
    for (group, version, expected) in [
        ("", "v1", 17),
        ("apps", "v1", 5),
        ("batch", "v1", 2),
        ("autoscaling", "v1", 1),
        ("autoscaling", "v2", 1),
        ("policy", "v1", 1),
        ("rbac.authorization.k8s.io", "v1", 4),
        ("apiextensions.k8s.io", "v1", 1),
        ("authorization.k8s.io", "v1", 4),
        ("flowcontrol.apiserver.k8s.io", "v1", 0),
    ] {
        assert_eq!(count(group, version), expected, "{group}/{version}");
    }
}

#[test]
fn a_kind_has_its_names_verbs_and_subresources() {
    let deployment = find("apps", "v1", "Deployment").unwrap();
    assert_eq!((deployment.plural, deployment.singular), ("deployments", "deployment"));
    assert_eq!(deployment.short_names, ["deploy"]);
    assert_eq!(deployment.categories, ["all"]);
    assert_eq!(deployment.list_kind, Some("DeploymentList"));
    assert!(deployment.namespaced);
    assert_eq!(
        deployment.verbs,
        ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
    );
    let scale = deployment.subresources.iter().find(|sub| sub.name == "scale").unwrap();
    assert_eq!((scale.group, scale.version, scale.kind), ("autoscaling", "v1", "Scale"));
    let status = deployment.subresources.iter().find(|sub| sub.name == "status").unwrap();
    assert_eq!((status.group, status.kind), ("apps", "Deployment"));
    let review = find("authorization.k8s.io", "v1", "SelfSubjectAccessReview").unwrap();
    assert_eq!((review.list_kind, review.verbs.as_slice()), (None, ["create"].as_slice()));
}

#[test]
fn every_kind_has_a_definition_and_names_are_unique() {
    let plurals: BTreeSet<_> = all().iter().map(|k| (k.group, k.version, k.plural)).collect();
    assert_eq!(plurals.len(), all().len());
    for kind in all() {
        let schema = definition(kind.schema.unwrap_or_else(|| panic!("{} has no definition", kind.kind)));
        assert_eq!(schema.kind, Type::Object, "{}", kind.kind);
        assert!(schema.properties.contains_key("metadata"), "{}", kind.kind);
    }
}

#[test]
fn every_definition_decodes_and_every_reference_has_a_target() {
    let total = definitions_count();
    assert!(total > 600, "{total} definitions");
    for index in 0..u16::try_from(total).unwrap() {
        check_children(definition(index), total, 0);
    }
    assert_eq!(definition(u16::MAX), &Schema::default());
}

fn check_children(schema: &Schema, total: usize, depth: usize) {
    assert!(depth < 10);
    for child in schema.properties.values().chain(&schema.items).chain(&schema.values) {
        match child {
            SchemaRef::Builtin(index) => assert!(usize::from(*index) < total),
            SchemaRef::Inline(inline) => check_children(inline, total, depth + 1),
        }
    }
}

/// The sentences of Kubernetes' documents are not ours to keep. A field may be called description.
#[test]
fn the_table_holds_no_sentences() {
    fn is_silent(source: &Value) -> bool {
        match source {
            Value::Object(fields) => {
                !fields.get("description").is_some_and(Value::is_string) && fields.values().all(is_silent)
            }
            Value::Array(items) => items.iter().all(is_silent),
            _ => true,
        }
    }
    for index in 0..u16::try_from(definitions_count()).unwrap() {
        assert!(is_silent(&super::source(index)), "{:?}", name(index));
    }
}

#[test]
fn lists_keep_how_they_merge() {
    let containers = field("io.k8s.api.core.v1.PodSpec", "containers");
    assert_eq!(containers.list, ListType::Map(vec!["name".into()]));
    assert!(containers.patch.merge);
    assert_eq!(containers.patch.merge_key.as_deref(), Some("name"));
    let ports = field("io.k8s.api.core.v1.Container", "ports");
    assert_eq!(ports.list, ListType::Map(vec!["containerPort".into(), "protocol".into()]));
    assert_eq!(ports.patch.merge_key.as_deref(), Some("containerPort"));
    assert_eq!(field("io.k8s.api.core.v1.ContainerPort", "protocol").default, Some(json!("TCP")));
    assert_eq!(field("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "finalizers").list, ListType::Set);
    let volumes = field("io.k8s.api.core.v1.PodSpec", "volumes");
    assert!(volumes.patch.merge && volumes.patch.retain_keys);
}

#[test]
fn references_with_siblings_keep_both() {
    let strategy = field("io.k8s.api.apps.v1.DeploymentSpec", "strategy");
    assert!(strategy.patch.retain_keys && strategy.properties.contains_key("rollingUpdate"));
    assert_eq!(strategy.default, Some(json!({})));
    assert!(field("io.k8s.api.policy.v1.PodDisruptionBudgetSpec", "selector").patch.replace);
    assert!(definition_named("io.k8s.api.core.v1.ObjectReference").unwrap().atomic_map);
    assert!(!field("io.k8s.api.core.v1.PersistentVolumeSpec", "claimRef").atomic_map);
    assert!(field("io.k8s.api.core.v1.PodSpec", "nodeSelector").atomic_map);
}

#[test]
fn types_with_their_own_json_form_are_known() {
    assert!(field("io.k8s.api.core.v1.ServicePort", "targetPort").int_or_string);
    let quantity = field("io.k8s.api.core.v1.ResourceRequirements", "limits.{}");
    assert_eq!((quantity.kind, quantity.format.as_deref()), (Type::Any, Some("quantity")));
    let data = field("io.k8s.api.apps.v1.ControllerRevision", "data");
    assert!(data.preserve_unknown);
    let time = field("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "creationTimestamp");
    assert_eq!((time.kind, time.format.as_deref()), (Type::String, Some("date-time")));
}

#[test]
fn definitions_may_hold_themselves() {
    let props = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    let deep = field(props, "properties.{}.properties.{}.not.properties.{}.default");
    assert!(deep.preserve_unknown && deep.kind == Type::Any);
    assert_eq!(name(index_named(props).unwrap()), Some(props));
    assert_eq!(index_named("io.k8s.api.core.v1.Nothing"), None);
}
