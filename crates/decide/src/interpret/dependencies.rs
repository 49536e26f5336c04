//! InterpretDependency of the built-in kinds: the other objects that an object needs in a member. Sorted, so that the
//! same object always gives the same list (C6).

use std::collections::BTreeMap;

use api::LabelSelector;
use api::interpreter::DependentObjectReference;
use serde_json::Value;

use super::{Kind, pod};
use crate::fields::{at, list, text};

/// What an object needs; none for kinds of which nothing is known.
pub fn dependencies(object: &Value) -> Option<Vec<DependentObjectReference>> {
    let namespace = text(object, &["metadata", "namespace"]);
    let mut needs = match Kind::of(object)? {
        Kind::Ingress => {
            let secrets = list(object, &["spec", "tls"]).iter().map(|tls| text(tls, &["secretName"]));
            secrets.filter(|name| !name.is_empty()).map(|name| reference("Secret", namespace, name)).collect()
        }
        Kind::ServiceImport => of_service_import(object, namespace),
        kind => of_pod(object, at(object, kind.pod_path()?).unwrap_or(&Value::Null), namespace),
    };
    needs.sort();
    needs.dedup();
    Some(needs)
}

fn of_pod(object: &Value, pod: &Value, namespace: &str) -> Vec<DependentObjectReference> {
    let templates = list(object, &["spec", "volumeClaimTemplates"]).iter();
    let own: Vec<&str> = templates.map(|template| text(template, &["metadata", "name"])).collect();
    let mut claims = pod::volume_claims(pod);
    claims.retain(|name| !own.contains(&name.as_str()));
    let kinds = [
        ("ConfigMap", pod::config_maps(pod)),
        ("PersistentVolumeClaim", claims),
        ("Secret", pod::secrets(pod)),
        ("ServiceAccount", pod::service_account(pod).into_iter().collect()),
    ];
    let references = kinds.into_iter().flat_map(|(kind, names)| {
        names.into_iter().map(move |name| reference(kind, namespace, &name)).collect::<Vec<_>>()
    });
    references.collect()
}

fn of_service_import(object: &Value, namespace: &str) -> Vec<DependentObjectReference> {
    let derived = format!("derived-{}", text(object, &["metadata", "name"]));
    let labels = BTreeMap::from([("kubernetes.io/service-name".to_owned(), derived.clone())]);
    let slices = DependentObjectReference {
        api_version: "discovery.k8s.io/v1".to_owned(),
        kind: "EndpointSlice".to_owned(),
        namespace: namespace.to_owned(),
        name: String::new(),
        label_selector: Some(LabelSelector { match_labels: labels, ..LabelSelector::default() }),
    };
    vec![reference("Service", namespace, &derived), slices]
}

fn reference(kind: &str, namespace: &str, name: &str) -> DependentObjectReference {
    DependentObjectReference {
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        label_selector: None,
    }
}
