//! Approves a change that exceeds a change budget: reads the digest of the plan (digest pin) out of the refusal and
//! puts it on the object that is sent again. Sends nothing.

use api::records::APPROVED_PLAN;
use serde_json::{Value, json};

use crate::api_client::{Answer, message};
use crate::step::Action;

/// The same action with an approval of the plan for which it was refused; none if it was not refused for that.
pub fn approved(action: &Action, answers: &[Answer]) -> Option<Action> {
    let digest = answers.iter().filter(|answer| !answer.done).find_map(|answer| digest(&answer.body))?;
    match action {
        Action::Apply(manifests) => {
            let mut manifests = manifests.clone();
            manifests.iter_mut().for_each(|manifest| annotate(manifest, digest));
            Some(Action::Apply(manifests))
        }
        Action::Edit(reference, patch) => {
            let mut patch = patch.clone();
            annotate(&mut patch, digest);
            Some(Action::Edit(reference.clone(), patch))
        }
        _ => None,
    }
}

fn digest(status: &Value) -> Option<&str> {
    let (_, digest) = message(status).rsplit_once(&format!("{APPROVED_PLAN}="))?;
    Some(digest.trim())
}

fn annotate(object: &mut Value, digest: &str) {
    if !object["metadata"]["annotations"].is_object() {
        object["metadata"]["annotations"] = json!({});
    }
    object["metadata"]["annotations"][APPROVED_PLAN] = digest.into();
}
