//! Namespace isolation: a ResourceBinding reaches only objects of its own namespace (M3), no matter which client wrote
//! it. Otherwise permission to write bindings in one namespace would allow to export the Secrets of all others.

use std::fmt;

use api::Binding;
use serde::{Deserialize, Serialize};

use crate::template::TemplateKey;

/// A binding that is about something outside its namespace, and is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trespass {
    /// The namespace of the binding.
    pub namespace: String,
    /// What it is about.
    pub resource: TemplateKey,
}

impl fmt::Display for Trespass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Trespass { namespace, resource } = self;
        write!(
            formatter,
            "This binding is ignored: spec.resource is {resource}, and a ResourceBinding in namespace {namespace} \
             reaches only objects of that namespace"
        )
    }
}

/// What a binding is about outside its namespace; none if it stays inside. What a ClusterResourceBinding is about is the
/// decision of an administrator.
pub fn trespass(binding: &Binding) -> Option<Trespass> {
    let namespace = &binding.metadata.namespace;
    let outside = !namespace.is_empty() && binding.spec.resource.namespace != *namespace;
    outside.then(|| Trespass { namespace: namespace.clone(), resource: TemplateKey::of(binding) })
}

#[cfg(test)]
mod tests {
    use api::kinds;

    use super::*;

    #[test]
    fn m3_a_binding_reaches_only_its_own_namespace() {
        let check = |binding: &str, resource: &str, expected: bool| {
            let kind =
                if binding.is_empty() { kinds::CLUSTER_RESOURCE_BINDING } else { kinds::RESOURCE_BINDING };
            let mut binding = Binding::new(&kind, binding, "db-secret");
            binding.spec.resource.kind = "Secret".to_owned();
            binding.spec.resource.name = "db".to_owned();
            binding.spec.resource.namespace = resource.to_owned();
            assert_eq!(trespass(&binding).is_some(), expected, "{binding:?}");
        };
        check("team-a", "team-a", false);
        check("team-a", "team-b", true);
        check("team-a", "", true);
        check("", "", false);
        check("", "team-b", false);
    }
}
