//! The discovery cache: which kinds of templates the control plane serves, and under which plural. A kind that is
//! merely unknown is never taken for one that is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::RwLock;

use supervise::Recovered as _;

/// How a kind is addressed in paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// The plural name.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

/// The kinds that are served. Locks are held for moments.
#[derive(Default)]
pub struct ServedKinds {
    /// By apiVersion and kind.
    served: RwLock<BTreeMap<(String, String), Served>>,
    /// Kinds of which the server itself said that it no longer serves them.
    gone: RwLock<BTreeSet<(String, String)>>,
}

impl ServedKinds {
    /// How a kind is addressed in paths; `None` if it is not known to be served.
    pub fn get(&self, api_version: &str, kind: &str) -> Option<Served> {
        self.served.read().recovered().get(&type_of(api_version, kind)).cloned()
    }

    /// Notes that a kind is served.
    pub fn put(&self, api_version: &str, kind: &str, served: Served) {
        let types = type_of(api_version, kind);
        self.gone.write().recovered().remove(&types);
        self.served.write().recovered().insert(types, served);
    }

    /// Forgets a kind that discovery no longer lists.
    pub(super) fn remove(&self, api_version: &str, kind: &str) {
        self.served.write().recovered().remove(&type_of(api_version, kind));
    }

    /// Notes that the server said it no longer serves a kind.
    pub fn note_gone(&self, api_version: &str, kind: &str) {
        self.gone.write().recovered().insert(type_of(api_version, kind));
    }

    /// Whether the server said that it no longer serves a kind.
    pub fn is_gone(&self, api_version: &str, kind: &str) -> bool {
        self.gone.read().recovered().contains(&type_of(api_version, kind))
    }
}

fn type_of(api_version: &str, kind: &str) -> (String, String) {
    (api_version.to_owned(), kind.to_owned())
}
