//! The steps of a scenario: one action of a user or operator, or expectations.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::api_client::named;
use crate::expectation::Expectation;
use crate::files;
use crate::reference::Reference;
use crate::short::{OneOrMany, Policy, Template};
use crate::yaml::yaml_problem;

/// A step.
#[derive(Debug, Clone)]
pub struct Step {
    /// What it is about, in the words of the file, or else in its own.
    pub title: String,
    /// What the file says about it.
    pub said: Option<String>,
    /// The manifests of it, as they stand in the file.
    pub text: Option<String>,
    /// What is done.
    pub action: Action,
    /// The member in which it is done; the control plane if none.
    pub place: Option<String>,
    /// A part of the message with which it has to be refused.
    pub rejected: Option<String>,
    /// Whether it is refused for what it would do, and sent again with an approval of that plan.
    pub approved: bool,
    /// Parts of warnings that have to come with the answer.
    pub warned: Vec<String>,
    /// The line of the file in which it begins.
    pub line: u64,
}

/// The longest real wait where the clock cannot be advanced.
const LIVE_WAIT_MAX: Duration = Duration::from_secs(60);

impl Step {
    /// Whether a live control plane needs a host for this step.
    pub fn needs_host(&self) -> bool {
        matches!(&self.action, Action::Wait(time) if *time > LIVE_WAIT_MAX) || self.is_about_clusters()
    }

    /// Whether a cluster joins, leaves or is cut off.
    pub fn is_about_clusters(&self) -> bool {
        match &self.action {
            Action::Join(_) | Action::Reach(..) => true,
            // A cluster that was there before is not the scenario's to remove.
            Action::Delete(references) => references.iter().any(|reference| reference.kind == "Cluster"),
            _ => false,
        }
    }

    /// The objects that the step changes.
    pub fn touched(&self) -> Vec<Reference> {
        match &self.action {
            Action::Apply(manifests) => manifests.iter().map(named).collect(),
            Action::Edit(reference, _) | Action::Touch(reference) => vec![reference.clone()],
            Action::Delete(references) => references.clone(),
            _ => Vec::new(),
        }
    }
}

/// What is done.
#[derive(Debug, Clone)]
pub enum Action {
    /// Objects are created, or made to be as their manifests say.
    Apply(Vec<Value>),
    /// Fields of an object are changed.
    Edit(Reference, Value),
    /// A user changes something about an object that changes nothing else.
    Touch(Reference),
    /// Objects are deleted.
    Delete(Vec<Reference>),
    /// A cluster joins.
    Join(Cluster),
    /// A cluster can be reached again, or not any more.
    Reach(String, bool),
    /// Restarts all controllers.
    Restart,
    /// Time passes.
    Wait(Duration),
    /// What has to be so when everything has come to rest.
    Expect(Expectation),
}

/// A cluster: its name alone, or what is special about it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "NamedOrDescribed")]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Map<String, Value>,
    /// Its provider.
    pub provider: String,
    /// Its region.
    pub region: String,
    /// Its zone.
    pub zone: String,
    /// The processors of its only node.
    pub cpu: String,
    /// How many pods its only node takes.
    pub pods: u32,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum NamedOrDescribed {
    Named(String),
    Described(Described),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    name: String,
    #[serde(default)]
    labels: Map<String, Value>,
    provider: Option<String>,
    region: Option<String>,
    zone: Option<String>,
    cpu: Option<String>,
    pods: Option<u32>,
}

impl From<NamedOrDescribed> for Cluster {
    fn from(cluster: NamedOrDescribed) -> Self {
        let described = match cluster {
            NamedOrDescribed::Described(described) => described,
            NamedOrDescribed::Named(name) => Described { name, ..Described::default() },
        };
        Self {
            name: described.name,
            labels: described.labels,
            provider: described.provider.unwrap_or_default(),
            region: described.region.unwrap_or_default(),
            zone: described.zone.unwrap_or_default(),
            cpu: described.cpu.unwrap_or_else(|| "64".to_owned()),
            pods: described.pods.unwrap_or(1_000),
        }
    }
}

impl Cluster {
    /// A cluster about which there is nothing special.
    pub fn named(name: &str) -> Self {
        NamedOrDescribed::Named(name.to_owned()).into()
    }

    /// Whether a member that has joined is what is special about this one. Where nothing is, any room will do.
    pub fn is_described_by(&self, object: &Value) -> bool {
        let usual = Self::named(&self.name);
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let labels = &object["metadata"]["labels"];
        let room = |usual: bool, resource: &str, wanted: &str| {
            usual || text(&format!("/status/resourceSummary/allocatable/{resource}")) == wanted
        };
        self.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && text("/spec/provider") == self.provider
            && text("/spec/region") == self.region
            && text("/spec/zones/0") == self.zone
            && room(self.cpu == usual.cpu, "cpu", &self.cpu)
            && room(self.pods == usual.pods, "pods", &self.pods.to_string())
    }
}

/// A step as it is written: one verb, and what belongs to it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Written {
    say: Option<String>,
    template: Option<Template>,
    policy: Option<Policy>,
    cluster_policy: Option<Policy>,
    apply: Option<Value>,
    edit: Option<Reference>,
    touch: Option<Reference>,
    delete: Option<OneOrMany<Reference>>,
    suspend: Option<Reference>,
    resume: Option<Reference>,
    cluster: Option<Cluster>,
    cut: Option<String>,
    mend: Option<String>,
    restart: Option<String>,
    wait: Option<String>,
    expect: Option<Map<String, Value>>,
    /// With `edit`: the fields.
    set: Option<Value>,
    /// With `suspend`: only these clusters.
    on: Option<Vec<String>>,
    #[serde(rename = "in")]
    place: Option<String>,
    rejected: Option<String>,
    #[serde(default)]
    approved: bool,
    warned: Option<OneOrMany<String>>,
}

impl Written {
    /// What it means; files that it names are looked for in the directory.
    pub fn read(mut self, directory: &Path, line: u64) -> Result<Step, String> {
        self.apply = self.apply.map(|apply| files::read(apply, directory)).transpose()?;
        let place = self.place.clone();
        let (say, rejected, approved) = (self.say.clone(), self.rejected.clone(), self.approved);
        let warned = self.warned.clone().map(OneOrMany::into_vec).unwrap_or_default();
        let text = self.apply.as_ref().and_then(Value::as_str).map(str::to_owned);
        let (title, action) = self.action()?;
        let acts =
            matches!(action, Action::Apply(_) | Action::Edit(..) | Action::Touch(_) | Action::Delete(_));
        if !acts && (place.is_some() || rejected.is_some() || !warned.is_empty()) {
            return Err(format!(
                "{title}: only steps that change objects can have `in`, `rejected` and `warned`"
            ));
        }
        if approved && !matches!(action, Action::Apply(_) | Action::Edit(..)) {
            return Err(format!("{title}: only steps that write objects can have `approved`"));
        }
        let title = say.clone().unwrap_or(title);
        Ok(Step { title, said: say, text, action, place, rejected, approved, warned, line })
    }

    fn action(mut self) -> Result<(String, Action), String> {
        let mut found = self.manifests()?;
        found.extend(self.edits()?);
        found.extend(self.happenings()?);
        let count = found.len();
        match found.pop() {
            Some(only) if count == 1 => Ok(only),
            None => {
                Err("a step needs a verb, such as template, policy, apply, edit, delete or expect".to_owned())
            }
            Some(_) => Err("a step has one verb; make it several steps".to_owned()),
        }
    }

    /// Verbs that bring manifests.
    fn manifests(&mut self) -> Result<Vec<(String, Action)>, String> {
        let mut found = Vec::new();
        if let Some(template) = self.template.take() {
            let manifest = template.manifest().map_err(|error| error.to_string())?;
            found.push((titled("template", &manifest), Action::Apply(vec![manifest])));
        }
        let policies = [
            (self.policy.take(), "PropagationPolicy"),
            (self.cluster_policy.take(), "ClusterPropagationPolicy"),
        ];
        for (policy, kind) in policies {
            let Some(policy) = policy else { continue };
            let manifest = policy.manifest(kind).map_err(|error| error.to_string())?;
            found.push((titled("policy", &manifest), Action::Apply(vec![manifest])));
        }
        if let Some(apply) = self.apply.take() {
            let manifests = manifests(apply)?;
            found
                .push((titled("apply", manifests.first().unwrap_or(&Value::Null)), Action::Apply(manifests)));
        }
        Ok(found)
    }

    /// Verbs that change or delete what is there.
    fn edits(&mut self) -> Result<Vec<(String, Action)>, String> {
        let mut found = Vec::new();
        match (self.edit.take(), self.set.take()) {
            (Some(reference), Some(set)) => {
                found.push((format!("edit {reference}"), Action::Edit(reference, set)))
            }
            (Some(reference), None) => return Err(format!("edit {reference}: say which fields with `set`")),
            (None, Some(_)) => return Err("`set` belongs to `edit`".to_owned()),
            (None, None) => {}
        }
        match (self.suspend.take(), self.on.take()) {
            (Some(policy), on) => {
                let patch = json!({ "spec": { "suspension": suspension(on) } });
                found.push((format!("suspend {policy}"), Action::Edit(policy, patch)));
            }
            (None, Some(_)) => return Err("`on` belongs to `suspend`".to_owned()),
            (None, None) => {}
        }
        if let Some(policy) = self.resume.take() {
            let patch = json!({ "spec": { "suspension": null } });
            found.push((format!("resume {policy}"), Action::Edit(policy, patch)));
        }
        if let Some(reference) = self.touch.take() {
            found.push((format!("touch {reference}"), Action::Touch(reference)));
        }
        if let Some(references) = self.delete.take() {
            let references = references.into_vec();
            let names: Vec<String> = references.iter().map(ToString::to_string).collect();
            found.push((format!("delete {}", names.join(", ")), Action::Delete(references)));
        }
        Ok(found)
    }

    /// Verbs that change no object, or none of a user's.
    fn happenings(&mut self) -> Result<Vec<(String, Action)>, String> {
        let mut found = Vec::new();
        if let Some(cluster) = self.cluster.take() {
            found.push((format!("cluster {} joins", cluster.name), Action::Join(cluster)));
        }
        if let Some(name) = self.cut.take() {
            found.push((format!("{name} is cut off"), Action::Reach(name, false)));
        }
        if let Some(name) = self.mend.take() {
            found.push((format!("{name} is back"), Action::Reach(name, true)));
        }
        match self.restart.take().as_deref() {
            Some("controllers") => found.push(("restart controllers".to_owned(), Action::Restart)),
            Some(what) => return Err(format!("restart {what}: only `controllers` can be restarted")),
            None => {}
        }
        if let Some(time) = self.wait.take() {
            found.push((format!("wait {time}"), Action::Wait(duration(&time)?)));
        }
        if let Some(fields) = self.expect.take() {
            found.push(("expect".to_owned(), Action::Expect(Expectation::read(fields)?)));
        }
        Ok(found)
    }
}

/// The suspension of a policy: for these clusters, or for all.
fn suspension(on: Option<Vec<String>>) -> Value {
    match on {
        None => json!({ "dispatching": true, "dispatchingOnClusters": null }),
        Some(clusters) => {
            json!({ "dispatching": null, "dispatchingOnClusters": { "clusterNames": clusters } })
        }
    }
}

fn titled(verb: &str, manifest: &Value) -> String {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    format!("{verb} {} {}", text("/kind"), text("/metadata/name"))
}

/// Manifests: one, a list of them, or YAML as it stands in a document.
fn manifests(apply: Value) -> Result<Vec<Value>, String> {
    let manifests = match apply {
        Value::String(text) => {
            serde_saphyr::from_multiple::<Value>(&text).map_err(|error| yaml_problem(&error))?
        }
        Value::Array(items) => items,
        single => vec![single],
    };
    for manifest in &manifests {
        for field in ["/apiVersion", "/kind", "/metadata/name"] {
            if manifest.pointer(field).and_then(Value::as_str).is_none() {
                return Err(format!("a manifest lacks {}", field.trim_start_matches('/').replace('/', ".")));
            }
        }
    }
    Ok(manifests)
}

/// Reads `90s`, `5m` or `1h`.
fn duration(text: &str) -> Result<Duration, String> {
    let unreadable = || format!("{text:?} is not a duration; write 90s, 5m or 1h");
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(unreadable)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => return Err(unreadable()),
    };
    let number: u64 = number.parse().map_err(|_| unreadable())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(unreadable)
}
