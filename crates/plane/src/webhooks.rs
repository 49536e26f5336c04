//! Installs the admission webhook configurations on a Kubernetes API server. They fail closed: no policy is written
//! while the webhook does not answer.

use api::{kinds, labels};
use controllers::rest::{Collection, Error, Rest};
use serde_json::{Value, json};

/// The name of both configurations.
const CONFIGURATION_NAME: &str = "longshore";
/// Both configurations: the plural of their kind, and their name.
pub const CONFIGURATIONS: [(&str, &str); 2] = [
    ("mutatingwebhookconfigurations", CONFIGURATION_NAME),
    ("validatingwebhookconfigurations", CONFIGURATION_NAME),
];
/// How long the API server waits for an answer.
const WEBHOOK_TIMEOUT_SECONDS: u32 = 10;

/// Where AdmissionReviews that may change an object are answered.
pub const MUTATE: &str = "/mutate";
/// Where AdmissionReviews that judge an object are answered.
pub const VALIDATE: &str = "/validate";

/// The address at which the API server reaches the webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// At this address, such as `https://127.0.0.1:9443`.
    Url(String),
    /// Through a Service in the API server's own cluster.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

impl Address {
    fn client(&self, path: &str, authority: &str) -> Value {
        let bundle = k8s_openapi::ByteString(authority.as_bytes().to_vec());
        match self {
            Address::Url(url) => json!({ "url": format!("{url}{path}"), "caBundle": bundle }),
            Address::Service { namespace, name } => json!({
                "service": { "namespace": namespace, "name": name, "path": path, "port": 443 },
                "caBundle": bundle,
            }),
        }
    }
}

/// Writes the webhook configurations with the address and the CA bundle: `authority` is in PEM.
pub async fn install_webhooks(control: &Rest, address: &Address, authority: &str) -> Result<(), Error> {
    for (plural, configuration) in [
        ("mutatingwebhookconfigurations", mutating(address, authority)),
        ("validatingwebhookconfigurations", validating(address, authority)),
    ] {
        let path = Collection::new("admissionregistration.k8s.io/v1", plural, "").object(CONFIGURATION_NAME);
        control.apply(&path, &configuration, true).await?;
    }
    Ok(())
}

fn mutating(address: &Address, authority: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": { "name": CONFIGURATION_NAME },
        "webhooks": [with(json!({
            "name": "defaults.longshore.io",
            "clientConfig": address.client(MUTATE, authority),
            "rules": [ours(&["CREATE", "UPDATE"])],
            "reinvocationPolicy": "IfNeeded",
        }))],
    })
}

fn validating(address: &Address, authority: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": CONFIGURATION_NAME },
        "webhooks": [
            with(json!({
                "name": "rules.longshore.io",
                "clientConfig": address.client(VALIDATE, authority),
                "rules": [ours(&["CREATE", "UPDATE", "DELETE"])],
            })),
            with(json!({
                "name": "budgets.longshore.io",
                "clientConfig": address.client(VALIDATE, authority),
                "rules": [
                    rule("", &["namespaces"], &["DELETE"]),
                    rule("apiextensions.k8s.io", &["customresourcedefinitions"], &["DELETE"]),
                    rule(kinds::APPS_GROUP, &[kinds::WORKLOAD_REBALANCER.plural], &["CREATE", "UPDATE"]),
                ],
            })),
            with(json!({
                "name": "protection.longshore.io",
                "clientConfig": address.client(VALIDATE, authority),
                "rules": [{
                    "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "scope": "*",
                    "operations": ["DELETE"],
                }],
                "objectSelector": {
                    "matchExpressions": [{ "key": labels::DELETION_PROTECTED, "operator": "Exists" }],
                },
            })),
        ],
    })
}

fn rule(group: &str, plurals: &[&str], operations: &[&str]) -> Value {
    json!({
        "apiGroups": [group],
        "apiVersions": ["*"], "resources": plurals, "scope": "*", "operations": operations,
    })
}

/// Every kind that has rules, which are those of three groups; subresources have none.
fn ours(operations: &[&str]) -> Value {
    let groups = [kinds::POLICY_GROUP, kinds::WORK_GROUP, kinds::CLUSTER_GROUP];
    let named = kinds::ALL.iter().filter(|kind| groups.contains(&kind.group));
    let plurals: Vec<&str> = named.map(|kind| kind.plural).collect();
    json!({
        "apiGroups": groups,
        "apiVersions": ["*"], "resources": plurals, "scope": "*", "operations": operations,
    })
}

/// What all of them have in common: without an answer nothing is written.
fn with(mut webhook: Value) -> Value {
    let common = json!({
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": WEBHOOK_TIMEOUT_SECONDS,
    });
    if let (Some(webhook), Value::Object(common)) = (webhook.as_object_mut(), common) {
        webhook.extend(common);
    }
    webhook
}
