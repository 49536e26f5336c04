//! Which binding owns a Work. An id alone proves nothing, since any client that writes bindings can copy one (M3).

use api::labels::{CLUSTER_RESOURCE_BINDING_PERMANENT_ID, RESOURCE_BINDING_PERMANENT_ID};
use api::{ObjectMeta, annotations};
use decide::BindingKey;

/// The permanent id that a binding and its Works share.
pub fn binding_id(metadata: &ObjectMeta) -> &str {
    match metadata.label(RESOURCE_BINDING_PERMANENT_ID) {
        "" => metadata.label(CLUSTER_RESOURCE_BINDING_PERMANENT_ID),
        id => id,
    }
}

/// Whether a Work belongs to a binding: an id alone may have been copied from another binding. Works of early Karmadas
/// say nothing but the id.
pub fn is_work_of(work: &ObjectMeta, binding: &ObjectMeta) -> bool {
    binding_id(work) == binding_id(binding)
        && binding_of_work(work).is_none_or(|key| key == binding_key(binding))
}

/// Which binding a Work belongs to, in one text: its permanent id, and its namespace and name if the Work says them.
/// Empty for a Work without a binding.
pub(super) fn owner_of(work: &ObjectMeta) -> String {
    match (binding_id(work), binding_of_work(work)) {
        ("", _) => String::new(),
        (id, None) => id.to_owned(),
        (id, Some(key)) => owner_text(id, &key),
    }
}

/// The same text, made of its parts.
pub(super) fn owner_text(id: &str, key: &BindingKey) -> String {
    match id {
        "" => String::new(),
        id => format!("{}/{}/{}", id.replace('/', "_"), key.namespace, key.name),
    }
}

/// The key of a binding.
pub fn binding_key(metadata: &ObjectMeta) -> BindingKey {
    BindingKey { namespace: metadata.namespace.clone(), name: metadata.name.clone() }
}

/// The binding that a Work says it belongs to.
pub fn binding_of_work(metadata: &ObjectMeta) -> Option<BindingKey> {
    let namespaced = metadata.annotation(annotations::RESOURCE_BINDING_NAME);
    let (namespace, name) = match namespaced {
        "" => ("", metadata.annotation(annotations::CLUSTER_RESOURCE_BINDING_NAME)),
        name => (metadata.annotation(annotations::RESOURCE_BINDING_NAMESPACE), name),
    };
    (!name.is_empty()).then(|| BindingKey { namespace: namespace.to_owned(), name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata(namespace: &str, name: &str, id: &str, annotations: serde_json::Value) -> ObjectMeta {
        serde_json::from_value(json!({
            "namespace": namespace, "name": name, "annotations": annotations,
            "labels": { "resourcebinding.karmada.io/permanent-id": id },
        }))
        .expect("metadata")
    }

    #[test]
    fn m3_a_copied_id_makes_no_work_ones_own() {
        let of = |namespace: &str| {
            json!({
                "resourcebinding.karmada.io/namespace": namespace, "resourcebinding.karmada.io/name": "shop-configmap",
            })
        };
        let theirs = metadata("team-b", "shop-configmap", "id-1", json!({}));
        let check = |work: &ObjectMeta, binding: &ObjectMeta, expected: bool| {
            assert_eq!(is_work_of(work, binding), expected, "{work:?}");
            let text = owner_text(binding_id(binding), &binding_key(binding));
            assert_eq!([text.as_str(), binding_id(binding)].contains(&owner_of(work).as_str()), expected);
        };
        let work = metadata("karmada-es-m1", "shop-1", "id-1", of("team-b"));
        check(&work, &theirs, true);
        check(&work, &metadata("team-a", "shop-configmap", "id-1", json!({})), false);
        check(&work, &metadata("team-b", "other-configmap", "id-1", json!({})), false);
        check(&work, &metadata("team-b", "shop-configmap", "id-2", json!({})), false);
        check(&metadata("karmada-es-m1", "shop-1", "id-1", json!({})), &theirs, true);
        assert_eq!(owner_of(&metadata("karmada-es-m1", "by-hand", "", of("team-b"))), "");
    }
}
