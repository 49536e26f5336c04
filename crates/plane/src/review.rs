//! The admission webhook's handler: takes an AdmissionReview and returns it with the response. Knows no network.

use std::sync::Arc;

use apiserver::admission::{Admission, Attributes, Operation};
use apiserver::authn::Identity;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::admission::fill_in;

/// How deep an object may be nested; what is deeper is replaced as a whole.
const DEPTH_MAX: usize = 100;

/// Interpreters AdmissionReviews.
#[derive(Clone)]
pub struct Reviewer {
    /// The rules, as an API server of our own would ask them.
    pub rules: Admission,
    /// What permanent ids are made from.
    pub random: Arc<dyn Fn() -> u128 + Send + Sync>,
    /// The wall clock.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

/// A request that cannot be answered, because it is not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the body is not an AdmissionReview of admission.k8s.io/v1")]
pub struct NoReview;

impl Reviewer {
    /// Fills in what an object leaves out. Refuses nothing: others may still change the object.
    pub fn mutate(&self, review: &Value) -> Result<Value, NoReview> {
        let request = Request::of(review)?;
        let mut object = request.object.clone();
        fill_in(&request.attributes(), &mut object, &*self.random, &*self.now);
        let mut patch = Vec::new();
        difference("", &request.object, &object, DEPTH_MAX, &mut patch);
        let mut response = json!({ "uid": request.uid, "allowed": true });
        if !patch.is_empty() {
            let patch = Value::Array(patch).to_string();
            response["patchType"] = "JSONPatch".into();
            response["patch"] = json!(k8s_openapi::ByteString(patch.into_bytes()));
        }
        Ok(answer(response))
    }

    /// Judges an object as it will be written.
    pub fn validate(&self, review: &Value) -> Result<Value, NoReview> {
        let request = Request::of(review)?;
        let mut object = request.object.clone();
        let response = match (self.rules)(&request.attributes(), &mut object) {
            Ok(warnings) => json!({ "uid": request.uid, "allowed": true, "warnings": warnings }),
            Err(error) => json!({ "uid": request.uid, "allowed": false, "status": error.status() }),
        };
        Ok(answer(response))
    }
}

fn answer(response: Value) -> Value {
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response })
}

/// What an AdmissionReview asks.
struct Request<'r> {
    uid: &'r str,
    body: &'r Value,
    operation: Operation,
    object: Value,
    old: Option<&'r Value>,
    identity: Identity,
}

impl<'r> Request<'r> {
    fn of(review: &'r Value) -> Result<Self, NoReview> {
        let body = &review["request"];
        let is_review = review["apiVersion"] == "admission.k8s.io/v1" && review["kind"] == "AdmissionReview";
        let uid = body["uid"].as_str().filter(|_| is_review).ok_or(NoReview)?;
        let operation = match body["operation"].as_str() {
            Some("CREATE") => Operation::Create,
            Some("UPDATE") => Operation::Update,
            Some("DELETE") => Operation::Delete,
            _ => return Err(NoReview),
        };
        let old = Some(&body["oldObject"]).filter(|old| old.is_object());
        let object = match operation {
            Operation::Delete => old.cloned().unwrap_or_default(),
            Operation::Create | Operation::Update => body["object"].clone(),
        };
        let identity = Identity::internal(body["userInfo"]["username"].as_str().unwrap_or_default());
        Ok(Self { uid, body, operation, object, old, identity })
    }

    fn attributes(&self) -> Attributes<'_> {
        let text = |pointer: &str| self.body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        Attributes {
            operation: self.operation,
            group: text("/kind/group"),
            version: text("/kind/version"),
            resource: text("/resource/resource"),
            kind: text("/kind/kind"),
            subresource: text("/subResource"),
            old: self.old,
            dry_run: self.body["dryRun"].as_bool().unwrap_or_default(),
            identity: &self.identity,
        }
    }
}

/// The operations of a JSON patch that turn one value into another.
fn difference(path: &str, before: &Value, after: &Value, depth: usize, patch: &mut Vec<Value>) {
    if before == after {
        return;
    }
    let (Value::Object(old), Value::Object(new), 1..) = (before, after, depth) else {
        patch.push(json!({ "op": "replace", "path": path, "value": after }));
        return;
    };
    let below = |key: &str| format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.push(json!({ "op": "remove", "path": below(key) }));
    }
    for (key, value) in new {
        match old.get(key) {
            Some(same) => difference(&below(key), same, value, depth - 1, patch),
            None => patch.push(json!({ "op": "add", "path": below(key), "value": value })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy_impact::PolicyImpact;

    fn reviewer() -> Reviewer {
        let random = Arc::new(|| 7_u128);
        let now = Arc::new(|| Timestamp::UNIX_EPOCH);
        let rules = crate::admission::rules(
            decide::Gates::default(),
            random.clone(),
            now.clone(),
            PolicyImpact::default(),
        );
        Reviewer { rules, random, now }
    }

    fn review(operation: &str, object: &Value, old: &Value) -> Value {
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "u", "operation": operation, "object": object, "oldObject": old,
                "kind": { "group": "policy.karmada.io", "version": "v1alpha1", "kind": "PropagationPolicy" },
                "resource": { "resource": "propagationpolicies" },
            },
        })
    }

    fn policy(selectors: Value) -> Value {
        json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "metadata": { "name": "pp", "namespace": "n" },
            "spec": { "resourceSelectors": selectors },
        })
    }

    #[test]
    fn what_is_left_out_is_filled_in_by_a_patch() {
        let object = policy(json!([{ "apiVersion": "apps/v1", "kind": "Deployment" }]));
        let answer = reviewer().mutate(&review("CREATE", &object, &Value::Null)).expect("a review");
        let bytes: k8s_openapi::ByteString =
            serde_json::from_value(answer["response"]["patch"].clone()).expect("base64");
        let patch: Vec<Value> = serde_json::from_slice(&bytes.0).expect("a patch");
        let paths: Vec<&str> = patch.iter().filter_map(|one| one["path"].as_str()).collect();
        assert!(paths.contains(&"/metadata/labels") && paths.contains(&"/metadata/finalizers"), "{paths:?}");
        assert_eq!(answer["response"]["allowed"], true);
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_says_why() {
        let check = |selector: Value, expected: bool| {
            let answer = reviewer().validate(&review("CREATE", &policy(json!([selector])), &Value::Null));
            let answer = answer.expect("a review");
            assert_eq!(answer["response"]["allowed"], expected, "{answer}");
            answer
        };
        check(json!({ "apiVersion": "apps/v1", "kind": "Deployment" }), true);
        let refused =
            check(json!({ "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "other" }), false);
        assert_eq!(refused["response"]["status"]["code"], 422);
        assert!(
            refused["response"]["status"]["message"].to_string().contains("not the policy's own namespace")
        );
    }

    #[test]
    fn what_is_protected_is_not_deleted() {
        let mut object = policy(json!([]));
        object["metadata"]["labels"] = json!({ "resourcetemplate.karmada.io/deletion-protected": "Always" });
        let answer = reviewer().validate(&review("DELETE", &Value::Null, &object)).expect("a review");
        assert_eq!(answer["response"]["allowed"], false, "{answer}");
    }

    #[test]
    fn what_is_no_review_is_not_answered() {
        assert_eq!(reviewer().validate(&json!({})), Err(NoReview));
        assert_eq!(reviewer().mutate(&review("CONNECT", &Value::Null, &Value::Null)), Err(NoReview));
    }

    #[test]
    fn a_patch_leads_from_one_value_to_the_other() {
        let check = |before: Value, after: Value, expected: Value| {
            let mut patch = Vec::new();
            difference("", &before, &after, DEPTH_MAX, &mut patch);
            assert_eq!(Value::Array(patch), expected);
        };
        check(json!({ "a": 1 }), json!({ "a": 1 }), json!([]));
        check(
            json!({ "a": { "x/y": 1 }, "b": 2 }),
            json!({ "a": { "x/y": 2, "z~": [] } }),
            json!([
                { "op": "remove", "path": "/b" },
                { "op": "replace", "path": "/a/x~1y", "value": 2 },
                { "op": "add", "path": "/a/z~0", "value": [] },
            ]),
        );
    }
}
