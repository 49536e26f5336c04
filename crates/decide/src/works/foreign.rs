//! Ownership check: is a Work about its binding's template? Checked before anything is delivered, so that a Work that
//! was written by hand, or rendered by an older version, brings nothing else to a member (M3).

use std::fmt;

use api::{Binding, Work, annotations};
use serde_json::Value;

use crate::fields::text;
use crate::template::{TemplateKey, group};

/// A manifest that is not the template of its Work's binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    manifest: TemplateKey,
    template: TemplateKey,
}

impl fmt::Display for Foreign {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Foreign { manifest, template } = self;
        write!(
            formatter,
            "the manifest is {manifest} of {}, but the binding of this Work is about {template} of {}: it is not delivered",
            manifest.api_version, template.api_version
        )
    }
}

/// The first manifest of a Work that is not the template of its binding.
pub fn foreign(work: &Work, binding: &Binding) -> Option<Foreign> {
    let template = TemplateKey::of(binding);
    let manifests = work.spec.workload.manifests.iter().map(key);
    let mut others = manifests.filter(|manifest| !is_same(manifest, &template));
    others.next().map(|manifest| Foreign { manifest, template })
}

/// True for an object outside the namespace of the binding that a Work belongs to. A Work that belongs to no namespaced
/// binding was written by the control plane for a Namespace or a cluster-scoped object, or by an administrator.
pub(super) fn is_outside(work: &Work, object: &Value) -> bool {
    let namespace = work.metadata.annotation(annotations::RESOURCE_BINDING_NAMESPACE);
    !namespace.is_empty() && text(object, &["metadata", "namespace"]) != namespace
}

fn is_same(one: &TemplateKey, other: &TemplateKey) -> bool {
    let parts = |key: &TemplateKey| (key.kind.clone(), key.namespace.clone(), key.name.clone());
    // The version of a kind may have changed since the Work was rendered.
    group(&one.api_version) == group(&other.api_version) && parts(one) == parts(other)
}

fn key(manifest: &Value) -> TemplateKey {
    let part = |path: &[&str]| text(manifest, path).to_owned();
    TemplateKey {
        api_version: part(&["apiVersion"]),
        kind: part(&["kind"]),
        namespace: part(&["metadata", "namespace"]),
        name: part(&["metadata", "name"]),
    }
}

#[cfg(test)]
mod tests {
    use api::kinds;
    use serde_json::json;

    use super::*;

    fn binding() -> Binding {
        let mut binding = Binding::new(&kinds::RESOURCE_BINDING, "team-a", "web-deployment");
        let resource =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "team-a", "name": "web"});
        binding.spec.resource = serde_json::from_value(resource).expect("a reference");
        binding
    }

    #[test]
    fn m3_a_work_brings_the_template_of_its_binding_only() {
        let check = |manifest: Value, expected: bool| {
            let mut work = Work::new(&kinds::WORK, "karmada-es-m1", "web");
            work.spec.workload.manifests = vec![manifest];
            let found = foreign(&work, &binding());
            assert_eq!(found.is_some(), expected, "{found:?}");
        };
        let manifest = |version: &str, kind: &str, namespace: &str, name: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"namespace": namespace, "name": name}});
        check(manifest("apps/v1", "Deployment", "team-a", "web"), false);
        check(manifest("apps/v1beta1", "Deployment", "team-a", "web"), false);
        check(manifest("other/v1", "Deployment", "team-a", "web"), true);
        check(manifest("apps/v1", "DaemonSet", "team-a", "web"), true);
        check(manifest("apps/v1", "Deployment", "kube-system", "web"), true);
        check(manifest("apps/v1", "Deployment", "team-a", "other"), true);
        check(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-b"}}), true);
        check(json!("text"), true);
    }
}
