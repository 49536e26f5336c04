//! A plan in a file: the changes, what they would do, and which states of objects that holds for. Values of Secrets
//! never get into it.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use decide::plan::Plan;
use decide::template::digest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::request::{Request, Verb};
use crate::Hint;

const API_VERSION: &str = "longshore.io/v1alpha1";
const KIND: &str = "Plan";

/// A plan that can be applied later.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Saved {
    api_version: String,
    kind: String,
    /// What the plan is known by: it follows from everything below.
    pub digest: String,
    /// Feature gates that were not at their default.
    pub gates: Vec<String>,
    /// The changes.
    pub requests: Vec<Request>,
    /// What they would do.
    pub plan: Value,
}

impl Saved {
    /// A plan of these requests.
    pub fn new(gates: Vec<String>, requests: Vec<Request>, plan: &Plan) -> Result<Self> {
        let is_secret = |request: &&Request| request.kind == "Secret" && request.verb != Verb::Delete;
        if let Some(secret) = requests.iter().find(is_secret) {
            let hint = "plan files must not contain values of Secrets: apply the Secret with kubectl, and \
                        plan the other objects";
            let refused = anyhow::Error::new(Hint(hint.to_owned()));
            return Err(refused.context(format!("{} cannot be saved", secret.object)));
        }
        let plan = serde_json::to_value(plan).context("write the plan")?;
        let digest = digest(&json!({ "gates": gates, "requests": requests, "plan": plan }));
        Ok(Self { api_version: API_VERSION.to_owned(), kind: KIND.to_owned(), digest, gates, requests, plan })
    }

    /// Writes it.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).context("write JSON")? + "\n";
        std::fs::write(path, text).with_context(|| format!("write {}", path.display()))
    }

    /// Reads a plan file, and fails if it was edited since it was saved.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        let hint = || Hint("`longshore plan -f MANIFEST --save FILE` writes a plan file".to_owned());
        let saved: Saved = serde_json::from_str(&text)
            .map_err(|error| anyhow::Error::new(hint()).context(error))
            .with_context(|| format!("read {} as a plan", path.display()))?;
        let found = digest(&json!({ "gates": saved.gates, "requests": saved.requests, "plan": saved.plan }));
        if (saved.api_version.as_str(), saved.kind.as_str()) != (API_VERSION, KIND) || found != saved.digest {
            let why = anyhow!("{} is not a plan file, or was edited", path.display());
            return Err(anyhow::Error::new(hint()).context(why));
        }
        Ok(saved)
    }

    /// Where a plan made now differs from this one, one line each.
    pub fn differences(&self, now: &Plan) -> Result<Vec<String>> {
        let now = serde_json::to_value(now).context("write the plan")?;
        let templates = |plan: &Value| plan["templates"].as_object().cloned().unwrap_or_default();
        let (then, now) = (templates(&self.plan), templates(&now));
        let names: std::collections::BTreeSet<&String> = then.keys().chain(now.keys()).collect();
        let mut lines = Vec::new();
        for name in names.into_iter().filter(|name| then.get(*name) != now.get(*name)) {
            let said = |plan: Option<&Value>| plan.map_or("nothing".to_owned(), brief);
            lines.push(format!(
                "{name}: {} when the plan was made, {} now",
                said(then.get(name)),
                said(now.get(name))
            ));
        }
        Ok(lines)
    }
}

/// What happens to one template, in few words.
fn brief(plan: &Value) -> String {
    let claim = plan["claim"]["change"].as_str().map(str::to_owned);
    let action = |(cluster, change): (&String, &Value)| {
        let part = |field: &str| change[field].as_i64().map(|count| count.to_string());
        let count = part("replicas").or(part("to")).map(|count| format!(" ({count})")).unwrap_or_default();
        format!("{} {cluster}{count}", change["action"].as_str().unwrap_or("?"))
    };
    let clusters = plan["clusters"].as_object().into_iter().flatten().map(action);
    let waits = plan.get("held").map(|_| "waits".to_owned());
    let all: Vec<String> = claim.into_iter().chain(clusters).chain(waits).collect();
    if all.is_empty() { "for another reason".to_owned() } else { all.join(", ") }
}
