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
mod type_check;

pub(crate) use type_check::type_warnings;

use binding::{Action, Binding};
use evaluate::Finding;
use policy::Policy;

/// Where policies are.
pub(crate) const TABLE: &str = "admissionregistration.k8s.io/validatingadmissionpolicies";
const BINDINGS: &str = "admissionregistration.k8s.io/validatingadmissionpolicybindings";

/// The audit annotation of failed validations.
const FAILURE_ANNOTATION: &str = "validation.policy.admission.k8s.io/validation_failure";
/// The longest audit annotation.
const ANNOTATION_BYTES_MAX: usize = 10 * 1024;

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
    pub(super) fn validate_policies(
        &self,
        attributes: &WriteAttributes<'_>,
        object: &Value,
    ) -> Result<Vec<String>, ApiError> {
        let bound = self.policies.all.load_full();
        let mut warnings = Vec::new();
        let mut denied: Option<Denial> = None;
        for Bound { policy, bindings } in bound.iter() {
            if !self.is_matched(&policy.matching, attributes, object) {
                continue;
            }
            for binding in bindings {
                let matched = binding.matching.as_ref();
                if matched.is_none_or(|matching| self.is_matched(matching, attributes, object)) {
                    let denial = run_blocking(|| {
                        self.apply_policy(policy, binding, attributes, object, &mut warnings)
                    });
                    denied = denied.or(denial);
                }
            }
        }
        match denied {
            None => Ok(warnings),
            Some(denial) => Err(refusal(attributes, object, &denial)),
        }
    }

    fn apply_policy(
        &self,
        policy: &Policy,
        binding: &Binding,
        attributes: &WriteAttributes<'_>,
        object: &Value,
        warnings: &mut Vec<String>,
    ) -> Option<Denial> {
        let described = |message: &str| {
            let (policy, binding) = (&policy.name, &binding.name);
            format!("ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {message}")
        };
        let params = match self.params(policy, binding, attributes) {
            Ok(params) => params,
            Err(_) if policy.is_ignored_when_failing => return None,
            Err(why) => {
                let message = described(&format!("failed to configure binding: {why}"));
                return Some(Denial { message, reason: "Invalid".to_owned() });
            }
        };
        let request = request(attributes, object);
        let namespace = match &*attributes.call.resource.table {
            "/namespaces" => Value::Null,
            _ => self.namespace_of(attributes, object).unwrap_or_default(),
        };
        let is_delete = attributes.operation == Operation::Delete;
        let mut denied = None;
        for params in &params {
            let variables = [
                ("object", if is_delete { &Value::Null } else { object }),
                ("oldObject", attributes.old.unwrap_or(&Value::Null)),
                ("request", &request),
                ("namespaceObject", &namespace),
                ("params", params),
            ];
            let evaluation = evaluate::Evaluation::new(
                policy,
                variables,
                ExpressionAuthorizer::new(&self.rbac, attributes, object),
            );
            let findings = evaluation.findings();
            for finding in findings.failed {
                let denial = apply_actions(policy, binding, attributes, &finding, warnings);
                let message = described(&finding.message);
                denied = denied.or_else(|| denial.then_some(Denial { message, reason: finding.reason }));
            }
            for (key, value) in findings.audit_annotations {
                let value = &value[..value.floor_char_boundary(ANNOTATION_BYTES_MAX)];
                attributes.call.audit_annotations.add(&format!("{}/{key}", policy.name), value);
            }
        }
        denied
    }
}

/// Does what the binding wants done about a failure; answers whether the write is refused.
fn apply_actions(
    policy: &Policy,
    binding: &Binding,
    attributes: &WriteAttributes<'_>,
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
                attributes.call.audit_annotations.add(FAILURE_ANNOTATION, &failure.to_string());
            }
        }
    }
    is_denied
}

/// A refusal has the code of its reason and the words of a prohibition.
fn refusal(attributes: &WriteAttributes<'_>, object: &Value, denial: &Denial) -> ApiError {
    let name = match attributes.call.name() {
        "" => text(object, "/metadata/name"),
        name => name,
    };
    let mut error = ApiError::forbidden(attributes.call.resource.subject(name), denial.message.as_str());
    (error.code, error.reason) = match denial.reason.as_str() {
        "Forbidden" => (403, "Forbidden"),
        "Unauthorized" => (401, "Unauthorized"),
        "RequestEntityTooLarge" => (413, "RequestEntityTooLarge"),
        _ => (422, "Invalid"),
    };
    error.details["causes"] = json!([{ "message": denial.message }]);
    error
}
