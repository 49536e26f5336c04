//! ValidatingAdmissionPolicyBindings: where a policy applies, with which parameters, and what a failed validation
//! leads to.

use serde_json::Value;

use crate::admission::matching::Matching;
use crate::storage::text;

/// What a failure leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// The write is refused.
    Deny,
    /// The client gets an admission warning.
    Warn,
    /// It is written down.
    Audit,
}

impl Action {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Deny => "Deny",
            Self::Warn => "Warn",
            Self::Audit => "Audit",
        }
    }
}

/// One binding.
pub(super) struct Binding {
    pub name: String,
    pub actions: Vec<Action>,
    /// What narrows the policy's own choice of writes, if something does.
    pub matching: Option<Matching>,
    /// Where the parameters are.
    pub params: Value,
}

impl Binding {
    pub fn read(source: &Value) -> Self {
        let spec = &source["spec"];
        let all = [Action::Deny, Action::Warn, Action::Audit];
        let said = spec["validationActions"].as_array().map(Vec::as_slice).unwrap_or_default();
        Self {
            name: text(source, "/metadata/name").to_owned(),
            actions: said
                .iter()
                .filter_map(|one| all.into_iter().find(|action| one == action.name()))
                .collect(),
            matching: spec["matchResources"]
                .is_object()
                .then(|| Matching::of_binding(&spec["matchResources"])),
            params: spec["paramRef"].clone(),
        }
    }
}
