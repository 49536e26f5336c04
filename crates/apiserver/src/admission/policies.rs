//! ValidatingAdmissionPolicies: CEL expressions that validate writes wherever a binding puts them into effect.
//! Without policies the cost per write is a look at an empty list.

use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use serde_json::{Value, json};
use store::{Range, Store};
use supervise::Recovered as _;

use super::webhooks::request;
use super::{AdmissionChain, ExpressionAuthorizer, Operation, WriteAttributes};
use crate::run_blocking::run_blocking;
use crate::storage::{stored, text};
use apimachinery::error::ApiError;

mod binding;
mod evaluate;
mod params;
mod policy;
mod typed;

pub(crate) use typed::type_warnings;

use binding::{Action, Binding};
use evaluate::Finding;
use policy::Policy;

/// Where policies are.
pub(crate) const TABLE: &str = "admissionregistration.k8s.io/validatingadmissionpolicies";
const BINDINGS: &str = "admissionregistration.k8s.io/validatingadmissionpolicybindings";

/// Where failures go that are only to be written down.
const FAILURE_NOTE: &str = "validation.policy.admission.k8s.io/validation_failure";
/// The longest note.
const NOTE_BYTES_MAX: usize = 10 * 1024;

/// The policies that are in effect.
#[derive(Default)]
pub(super) struct Policies {
    all: ArcSwap<Vec<Bound>>,
    /// Makes one reading of the store follow another.
    following: Mutex<()>,
}

/// A policy with the bindings that put it into effect.
struct Bound {
    policy: Policy,
    bindings: Vec<Binding>,
}

/// What speaks against a write.
struct Denial {
    message: String,
    reason: String,
}

impl Policies {
    /// Reads the policies that the store holds.
    pub fn load(store: &Store) -> Self {
        let policies = Self::default();
        policies.follow(store);
        policies
    }

    /// Whether objects of a table matter here.
    pub fn concerns(table: &str) -> bool {
        table == TABLE || table == BINDINGS
    }

    /// Reads the policies again, because one changed.
    pub fn follow(&self, store: &Store) {
        let _one_at_a_time = self.following.lock().recovered();
        let read = |table: &str| -> Vec<Value> {
            let entries = store.range(table, Range::default()).map(|page| page.entries).unwrap_or_default();
            entries.iter().map(|entry| stored::parse(&entry.value)).collect()
        };
        let bindings = read(BINDINGS);
        let bound = read(TABLE).into_iter().filter_map(|source| {
            let name = &source["metadata"]["name"];
            let own = bindings.iter().filter(|binding| binding["spec"]["policyName"] == *name);
            let bindings: Vec<Binding> = own.map(Binding::read).collect();
            // A policy without bindings is not in effect, and need not be compiled.
            (!bindings.is_empty()).then(|| Bound { policy: Policy::compile(&source), bindings })
        });
        self.all.store(Arc::new(bound.collect()));
    }
}

impl AdmissionChain {
    /// Evaluates every policy that matches a write. The error names the first policy that denies it.
    pub(super) fn obey_policies(
        &self,
        asking: &WriteAttributes<'_>,
        object: &Value,
    ) -> Result<Vec<String>, ApiError> {
        let bound = self.policies.all.load_full();
        let mut warnings = Vec::new();
        let mut denied: Option<Denial> = None;
        for Bound { policy, bindings } in bound.iter() {
            if !self.is_matched(&policy.matching, asking, object) {
                continue;
            }
            for binding in bindings {
                let matched = binding.matching.as_ref();
                if matched.is_none_or(|matching| self.is_matched(matching, asking, object)) {
                    let denial =
                        run_blocking(|| self.apply_policy(policy, binding, asking, object, &mut warnings));
                    denied = denied.or(denial);
                }
            }
        }
        match denied {
            None => Ok(warnings),
            Some(denial) => Err(refusal(asking, object, &denial)),
        }
    }

    fn apply_policy(
        &self,
        policy: &Policy,
        binding: &Binding,
        asking: &WriteAttributes<'_>,
        object: &Value,
        warnings: &mut Vec<String>,
    ) -> Option<Denial> {
        let told = |message: &str| {
            let (policy, binding) = (&policy.name, &binding.name);
            format!("ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {message}")
        };
        let params = match self.params(policy, binding, asking) {
            Ok(params) => params,
            Err(_) if policy.is_ignored_when_failing => return None,
            Err(why) => {
                let message = told(&format!("failed to configure binding: {why}"));
                return Some(Denial { message, reason: "Invalid".to_owned() });
            }
        };
        let request = request(asking, object);
        let namespace = match &*asking.call.resource.table {
            "/namespaces" => Value::Null,
            _ => self.namespace_of(asking, object).unwrap_or_default(),
        };
        let is_delete = asking.operation == Operation::Delete;
        let mut denied = None;
        for params in &params {
            let variables = [
                ("object", if is_delete { &Value::Null } else { object }),
                ("oldObject", asking.old.unwrap_or(&Value::Null)),
                ("request", &request),
                ("namespaceObject", &namespace),
                ("params", params),
            ];
            let scene = evaluate::Scene::new(
                policy,
                variables,
                ExpressionAuthorizer::new(&self.rbac, asking, object),
            );
            let findings = scene.findings();
            for finding in findings.failed {
                let denial = act(policy, binding, asking, &finding, warnings);
                let message = told(&finding.message);
                denied = denied.or_else(|| denial.then_some(Denial { message, reason: finding.reason }));
            }
            for (key, value) in findings.notes {
                let value = &value[..value.floor_char_boundary(NOTE_BYTES_MAX)];
                asking.call.notes.add(&format!("{}/{key}", policy.name), value);
            }
        }
        denied
    }
}

/// Does what the binding wants done about a failure; answers whether the write is refused.
fn act(
    policy: &Policy,
    binding: &Binding,
    asking: &WriteAttributes<'_>,
    finding: &Finding,
    warnings: &mut Vec<String>,
) -> bool {
    let mut is_denied = false;
    for action in &binding.actions {
        match action {
            Action::Deny => is_denied = true,
            Action::Warn => warnings.push(format!(
                "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                policy.name, binding.name, finding.message
            )),
            Action::Audit => {
                let actions: Vec<&str> = binding.actions.iter().map(Action::name).collect();
                let failure = json!([{
                    "message": finding.message,
                    "policy": policy.name,
                    "binding": binding.name,
                    "expressionIndex": finding.index,
                    "validationActions": actions,
                }]);
                asking.call.notes.add(FAILURE_NOTE, &failure.to_string());
            }
        }
    }
    is_denied
}

/// A refusal has the code of its reason and the words of a prohibition.
fn refusal(asking: &WriteAttributes<'_>, object: &Value, denial: &Denial) -> ApiError {
    let name = match asking.call.name() {
        "" => text(object, "/metadata/name"),
        name => name,
    };
    let mut error = ApiError::forbidden(asking.call.resource.subject(name), denial.message.as_str());
    (error.code, error.reason) = match denial.reason.as_str() {
        "Forbidden" => (403, "Forbidden"),
        "Unauthorized" => (401, "Unauthorized"),
        "RequestEntityTooLarge" => (413, "RequestEntityTooLarge"),
        _ => (422, "Invalid"),
    };
    error.details["causes"] = json!([{ "message": denial.message }]);
    error
}
