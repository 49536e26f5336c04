//! Checks the expectations of a step.

use std::collections::BTreeMap;

use api::{annotations, names};
use controllers::rest::Collection;
use serde_json::Value;

use crate::api_client::ApiClient;
use crate::environment::Environment;
use crate::error::PlayError;
use crate::expectation::{Expectation, Expected, Spread};
use crate::matching::differences;
use crate::reference::{DEFAULT_NAMESPACE, Reference};
use crate::way::Way;

/// In the place of a pattern: that there is nothing.
const ABSENT: &str = "absent";
/// In the place of a policy: that there is none.
const NO_POLICY: &str = "nobody";

/// How objects in members were when something was last expected of them, and how long the record of writes was.
#[derive(Debug, Default)]
pub struct EarlierStates(BTreeMap<(Reference, String), (Value, usize)>);

/// Compares the present state with expectations.
pub struct Checker<'a> {
    /// The control plane and its members.
    pub environment: &'a Environment,
    /// The way in which the scenario is played.
    pub way: Way,
    /// The states at earlier expectations.
    pub earlier: &'a EarlierStates,
}

impl Checker<'_> {
    /// What is not as expected, one line each.
    pub async fn problems(&self, expectation: &Expectation) -> Result<Vec<String>, PlayError> {
        let mut problems = Vec::new();
        for (reference, expected) in &expectation.objects {
            let found = self.object(reference, expected).await?;
            problems.extend(found.into_iter().map(|problem| format!("{reference}: {problem}")));
        }
        if self.counts()
            && let Some(metrics) = self.environment.metrics()
        {
            for (name, expected) in &expectation.metrics {
                let full = format!("karmada_{name}");
                let found = metrics.get(name).or_else(|| metrics.get(&full)).copied().unwrap_or_default();
                if found != *expected {
                    problems.push(format!("metric {name} is {found}, not {expected}"));
                }
            }
        }
        Ok(problems)
    }

    /// Whether events and metrics can be counted on: a retried write may record an event twice or not at all.
    fn counts(&self) -> bool {
        self.way != Way::Failures
    }

    async fn object(&self, reference: &Reference, expected: &Expected) -> Result<Vec<String>, PlayError> {
        let control = self.environment.control();
        let object = control.get(reference).await?.unwrap_or_default();
        let mut problems = Vec::new();
        if let Some(absent) = expected.absent
            && absent != object.is_null()
        {
            problems.push(if absent { "it is there".to_owned() } else { "it is not there".to_owned() });
        }
        if let Some(pattern) = &expected.has {
            problems.extend(differences(pattern, &object));
        }
        if let Some(policy) = &expected.claimed_by {
            problems.extend(claim(policy, &object)?);
        }
        let binding = self.binding(&control, reference, expected).await?;
        problems.extend(pattern_problems("binding", expected.binding.as_ref(), &binding));
        if let Some(spread) = &expected.scheduled_to {
            problems.extend(spread_problems("is scheduled to", spread, &scheduled(&binding)));
        }
        for (cluster, pattern) in expected.works.iter().flatten() {
            let work = work_of(&control, reference, cluster).await?;
            let work = control.get(&work).await?.unwrap_or_default();
            problems.extend(pattern_problems(&format!("Work for {cluster}"), Some(pattern), &work));
        }
        problems.extend(self.members(reference, expected).await?);
        if self.counts() {
            let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
            problems.extend(events(&control, reference, uid, expected).await?);
        }
        Ok(problems)
    }

    async fn binding(
        &self,
        control: &ApiClient,
        reference: &Reference,
        expected: &Expected,
    ) -> Result<Value, PlayError> {
        if expected.binding.is_none() && expected.scheduled_to.is_none() {
            return Ok(Value::Null);
        }
        Ok(control.get(&binding_of(control, reference).await?).await?.unwrap_or_default())
    }

    async fn members(&self, reference: &Reference, expected: &Expected) -> Result<Vec<String>, PlayError> {
        let mut problems = Vec::new();
        for (member, pattern) in expected.members.iter().flatten() {
            let found = self.environment.member(member)?.get(reference).await?.unwrap_or_default();
            problems.extend(pattern_problems(&format!("in {member}"), Some(pattern), &found));
        }
        if let Some(spread) = &expected.runs_in {
            let mut found = BTreeMap::new();
            for member in self.environment.members() {
                if let Some(object) = self.environment.member(&member)?.get(reference).await? {
                    found.insert(member, object["spec"]["replicas"].as_i64().unwrap_or_default());
                }
            }
            problems.extend(spread_problems("runs in", spread, &found));
        }
        for member in &expected.untouched_in {
            let Some((before, since)) = self.earlier.0.get(&(reference.clone(), member.clone())) else {
                problems.push(format!("no earlier step expected anything of it in {member}"));
                continue;
            };
            let api_client = self.environment.member(member)?;
            let now = essence(api_client.get(reference).await?.unwrap_or_default());
            let path = api_client.path(reference).await?.map(|path| path.to_string()).unwrap_or_default();
            if now != *before {
                problems.push(format!("it was changed in {member}: {}", first_difference(before, &now)));
            } else if let Environment::Simulated(simulated) = self.environment
                && simulated.faults().wrote(*since, member, &path)
            {
                problems.push(format!("it was written in {member}, though to no effect"));
            }
        }
        Ok(problems)
    }
}

impl EarlierStates {
    /// Remembers how the objects of an expectation are now.
    pub async fn take(
        &mut self,
        environment: &Environment,
        expectation: &Expectation,
    ) -> Result<(), PlayError> {
        let recorded = match environment {
            Environment::Simulated(simulated) => simulated.faults().recorded(),
            Environment::Live(_) => 0,
        };
        for (reference, _) in &expectation.objects {
            for member in environment.members() {
                let object = environment.member(&member)?.get(reference).await?.unwrap_or_default();
                self.0.insert((reference.clone(), member), (essence(object), recorded));
            }
        }
        Ok(())
    }
}

/// The binding of a template, whether there is one or not.
pub async fn binding_of(control: &ApiClient, reference: &Reference) -> Result<Reference, PlayError> {
    let kind = match control.is_namespaced(reference).await? {
        true => &api::kinds::RESOURCE_BINDING,
        false => &api::kinds::CLUSTER_RESOURCE_BINDING,
    };
    Ok(Reference {
        kind: kind.kind.to_owned(),
        group: Some(kind.group.to_owned()),
        namespace: Some(reference.namespace().to_owned()),
        name: names::binding_name(&reference.kind, &reference.name),
    })
}

/// The Work of a template for a cluster, whether there is one or not.
pub async fn work_of(
    control: &ApiClient,
    reference: &Reference,
    cluster: &str,
) -> Result<Reference, PlayError> {
    let namespace = match control.is_namespaced(reference).await? {
        true => reference.namespace(),
        false => "",
    };
    Ok(Reference {
        kind: api::kinds::WORK.kind.to_owned(),
        group: Some(api::kinds::WORK.group.to_owned()),
        namespace: Some(names::execution_namespace(cluster)),
        name: names::work_name(&reference.kind, &reference.name, namespace),
    })
}

/// An object without the fields that change by themselves, such as `status`.
fn essence(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            for noise in ["resourceVersion", "managedFields"] {
                metadata.remove(noise);
            }
        }
    }
    object
}

fn first_difference(before: &Value, now: &Value) -> String {
    let there = |object: &Value| !object.is_null();
    match (there(before), there(now)) {
        (true, false) => "it is gone".to_owned(),
        (false, true) => "it is there now".to_owned(),
        _ => differences(before, now).into_iter().next().unwrap_or_else(|| "it has more fields".to_owned()),
    }
}

fn pattern_problems(what: &str, pattern: Option<&Value>, found: &Value) -> Vec<String> {
    match pattern {
        None => Vec::new(),
        Some(Value::String(text)) if text == ABSENT => match found {
            Value::Null => Vec::new(),
            _ => vec![format!("{what}: it is there")],
        },
        Some(_) if found.is_null() => vec![format!("{what}: it is not there")],
        Some(pattern) => {
            differences(pattern, found).into_iter().map(|line| format!("{what}: {line}")).collect()
        }
    }
}

fn scheduled(binding: &Value) -> BTreeMap<String, i64> {
    let clusters = binding.pointer("/spec/clusters").and_then(Value::as_array).into_iter().flatten();
    let entry = |cluster: &Value| {
        let name = cluster["name"].as_str().unwrap_or_default().to_owned();
        (name, cluster["replicas"].as_i64().unwrap_or_default())
    };
    clusters.map(entry).collect()
}

fn spread_problems(what: &str, expected: &Spread, found: &BTreeMap<String, i64>) -> Option<String> {
    let shown =
        |spread: Vec<String>| if spread.is_empty() { "nowhere".to_owned() } else { spread.join(", ") };
    let with_replicas = |spread: &BTreeMap<String, i64>| {
        shown(spread.iter().map(|(cluster, replicas)| format!("{cluster} ({replicas})")).collect())
    };
    match expected {
        Spread::Replicas(replicas) => (replicas != found)
            .then(|| format!("{what} {}, not {}", with_replicas(found), with_replicas(replicas))),
        Spread::Clusters(clusters) => {
            let mut clusters = clusters.clone();
            clusters.sort();
            let names: Vec<String> = found.keys().cloned().collect();
            (clusters != names).then(|| format!("{what} {}, not {}", shown(names), shown(clusters)))
        }
    }
}

/// The policy that owns a template, by its labels and annotations.
fn claim(expected: &str, object: &Value) -> Result<Option<String>, PlayError> {
    let mark = |key: &str| object["metadata"]["annotations"][key].as_str().unwrap_or_default();
    let namespaced = mark(annotations::PROPAGATION_POLICY_NAME);
    let cluster = mark(annotations::CLUSTER_PROPAGATION_POLICY_NAME);
    let owner = match (namespaced, cluster) {
        ("", "") => NO_POLICY.to_owned(),
        ("", name) => format!("ClusterPropagationPolicy {name}"),
        (name, "") => {
            format!("PropagationPolicy {}/{name}", mark(annotations::PROPAGATION_POLICY_NAMESPACE))
        }
        (one, other) => return Ok(Some(format!("is claimed by both {one} and {other}"))),
    };
    let wanted = match expected {
        NO_POLICY => NO_POLICY.to_owned(),
        text => {
            let policy: Reference = text.parse().map_err(|error| PlayError(format!("claimedBy: {error}")))?;
            match policy.kind.as_str() {
                "PropagationPolicy" => format!("PropagationPolicy {}/{}", policy.namespace(), policy.name),
                _ => policy.to_string(),
            }
        }
    };
    Ok((owner != wanted).then(|| format!("is claimed by {owner}, not by {wanted}")))
}

/// What is wrong with the events about an object. One of the same name that was there before, maybe in another
/// scenario, is another one.
async fn events(
    control: &ApiClient,
    reference: &Reference,
    uid: &str,
    expected: &Expected,
) -> Result<Vec<String>, PlayError> {
    if expected.events.is_empty() && expected.no_events.is_empty() {
        return Ok(Vec::new());
    }
    let namespace = match control.is_namespaced(reference).await? {
        true => reference.namespace(),
        false => DEFAULT_NAMESPACE,
    };
    let list = control.fetch(Collection::new("v1", "events", namespace).path()).await?.unwrap_or_default();
    let about = |event: &&Value| {
        let object = &event["involvedObject"];
        let about = object["uid"].as_str().unwrap_or_default();
        let is_another = !uid.is_empty() && !about.is_empty() && about != uid;
        object["kind"] == reference.kind.as_str() && object["name"] == reference.name.as_str() && !is_another
    };
    let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    let events = list["items"].as_array().into_iter().flatten().filter(about);
    let events: Vec<(String, String)> =
        events.map(|event| (text(event, "reason"), text(event, "message"))).collect();
    let mut problems = Vec::new();
    for wanted in &expected.events {
        let (reason, part) = wanted.split_once(": ").unwrap_or((wanted, ""));
        if !events.iter().any(|(events, message)| events == reason && message.contains(part)) {
            problems.push(format!("there is no event {wanted}; there are {events:?}"));
        }
    }
    for unwanted in &expected.no_events {
        if let Some((_, message)) = events.iter().find(|(reason, _)| reason == unwanted) {
            problems.push(format!("there is an event {unwanted}: {message}"));
        }
    }
    Ok(problems)
}
