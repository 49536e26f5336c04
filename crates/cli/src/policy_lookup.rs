//! Parses the name of a propagation policy: `NAME`, `pp/NAME` or `cpp/NAME`.

use anyhow::Result;
use api::kinds::{CLUSTER_PROPAGATION_POLICY, Kind, PROPAGATION_POLICY};
use controllers::rest::Collection;
use decide::PolicyKey;
use serde_json::Value;

use crate::Hint;
use crate::connection::Control;

/// A policy as it is now.
pub struct FoundPolicy {
    /// Which of the two kinds.
    pub kind: Kind,
    /// Empty for a ClusterPropagationPolicy.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// The whole object.
    pub object: Value,
}

impl FoundPolicy {
    /// It as decisions know it.
    pub fn key(&self) -> PolicyKey {
        PolicyKey { namespace: self.namespace.clone(), name: self.name.clone() }
    }

    /// It as kubectl prints it.
    pub fn printed(&self) -> String {
        format!("{}.{}/{}", self.kind.singular(), self.kind.group, self.name)
    }
}

/// The policy of this name; without a kind the one of the namespace goes first.
pub async fn find(control: &Control, text: &str) -> Result<FoundPolicy> {
    let (wanted, name) = match text.split_once('/') {
        Some((kind, name)) => (vec![kind_of(kind)?], name),
        None => (vec![PROPAGATION_POLICY, CLUSTER_PROPAGATION_POLICY], text),
    };
    for kind in wanted {
        let namespace = match kind.scope {
            api::Scope::Namespaced => control.namespace.clone(),
            api::Scope::Cluster => String::new(),
        };
        let path = Collection::of(&kind, &namespace).object(name);
        if let Some(object) = control.rest.get(&path).await? {
            return Ok(FoundPolicy { kind, namespace, name: name.to_owned(), object });
        }
    }
    let hint = format!("`kubectl get pp,cpp` lists them; the search was in namespace {}", control.namespace);
    Err(anyhow::Error::new(Hint(hint)).context(format!("policy {text:?} not found")))
}

fn kind_of(word: &str) -> Result<Kind> {
    let word = word.to_lowercase();
    let goes_by = |kind: &&Kind| {
        kind.plural == word
            || kind.singular() == word
            || kind.short_names.contains(&word.as_str())
            || kind.crd_name() == word
    };
    [PROPAGATION_POLICY, CLUSTER_PROPAGATION_POLICY].iter().find(goes_by).copied().ok_or_else(|| {
        let hint = Hint("write NAME, pp/NAME or cpp/NAME".to_owned());
        anyhow::Error::new(hint).context(format!("{word:?} is not a kind of propagation policy"))
    })
}
