//! The objects that a scenario touches on a live control plane: their state before, whether they are at rest, and the
//! cleanup that restores them. Knows no steps.

use std::time::Duration;

use futures::future::try_join_all;
use serde_json::{Map, Value, json};

use crate::api_client::{ApiClient, message};
use crate::changes::ChangeDetector;
use crate::check::{binding_of, work_of};
use crate::deadline::Deadline;
use crate::environment::Environment;
use crate::error::PlayError;
use crate::reference::Reference;

/// How long nothing may change until that is called rest.
const IDLE_PERIOD: Duration = Duration::from_millis(300);
/// What does not rest within this time is looked at as it is: a live control plane may never rest.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// What keeps an object from being deleted.
const PROTECTION: &str = "resourcetemplate.karmada.io/deletion-protected";

/// Everything that a scenario touched.
#[derive(Debug, Default)]
pub struct TouchedObjects(Vec<TouchedObject>);

#[derive(Debug)]
struct TouchedObject {
    /// The member; the control plane if none.
    place: Option<String>,
    reference: Reference,
    /// How it was; null if it was not there.
    before: Value,
    /// Members that had an object of that name before.
    members: Vec<String>,
}

impl TouchedObject {
    /// Whether this is about that object; a reference without a group matches any.
    fn is_of(&self, place: Option<&str>, reference: &Reference) -> bool {
        let groups = self.reference.group.as_ref().zip(reference.group.as_ref());
        self.place.as_deref() == place
            && self.reference.kind == reference.kind
            && self.reference.name == reference.name
            && self.reference.namespace() == reference.namespace()
            && groups.is_none_or(|(one, other)| one == other)
    }

    fn is_new(&self) -> bool {
        self.before.is_null()
    }

    /// The revisions of the object and, if it is a template, of its binding, Works and copies.
    async fn revisions(&self, environment: &Environment) -> Result<Vec<String>, PlayError> {
        let reference = &self.reference;
        let api_client = environment.place(self.place.as_deref())?;
        let mut revisions = vec![revision(&api_client, reference).await?];
        if self.place.is_none() {
            revisions.push(revision(&api_client, &binding_of(&api_client, reference).await?).await?);
            for member in environment.members() {
                revisions
                    .push(revision(&api_client, &work_of(&api_client, reference, &member).await?).await?);
                let member = environment.member(&member)?;
                revisions.push(revision(&member, reference).await?);
            }
        }
        Ok(revisions)
    }
}

impl TouchedObjects {
    /// Has to be called before an object is touched.
    pub async fn remember(
        &mut self,
        environment: &Environment,
        place: Option<&str>,
        reference: &Reference,
    ) -> Result<(), PlayError> {
        if self.0.iter().any(|touched| touched.is_of(place, reference)) {
            return Ok(());
        }
        let before = environment.place(place)?.get(reference).await?.unwrap_or_default();
        let mut members = Vec::new();
        for member in environment.members() {
            if environment.member(&member)?.get(reference).await?.is_some() {
                members.push(member);
            }
        }
        let (place, reference) = (place.map(str::to_owned), reference.clone());
        self.0.push(TouchedObject { place, reference, before, members });
        Ok(())
    }

    /// Waits until no touched object, and none that controllers derive from it, changes any more.
    pub async fn rest(&self, environment: &Environment) -> Result<(), PlayError> {
        let mut deadline = Deadline::of(IDLE_TIMEOUT);
        let mut changes = ChangeDetector::now(environment).await?;
        let (mut last, mut quiet) = (self.revisions(environment).await?, Deadline::of(IDLE_PERIOD));
        while !quiet.is_over() && !deadline.is_over() {
            deadline.spend();
            quiet.wait().await;
            if !changes.has_changed(environment).await? {
                continue;
            }
            let revisions = self.revisions(environment).await?;
            if revisions != last {
                (last, quiet) = (revisions, Deadline::of(IDLE_PERIOD));
            }
        }
        Ok(())
    }

    async fn revisions(&self, environment: &Environment) -> Result<Vec<Vec<String>>, PlayError> {
        try_join_all(self.0.iter().map(|touched| touched.revisions(environment))).await
    }

    /// Makes everything be as it was: what is new is deleted, the last first, and waited for until it is gone
    /// everywhere; what was there gets its fields back. Namespaces go when they are empty: Kubernetes takes its time
    /// with one that is not.
    pub async fn restore_all(&self, environment: &Environment) -> Result<(), PlayError> {
        let is_namespace = |touched: &TouchedObject| touched.reference.kind == "Namespace";
        for round in [|namespace: bool| !namespace, |namespace| namespace] {
            let new = self.0.iter().rev().filter(|touched| touched.is_new() && round(is_namespace(touched)));
            let new: Vec<&TouchedObject> = new.collect();
            for touched in &new {
                let api_client = environment.place(touched.place.as_deref())?;
                delete(&api_client, &touched.reference).await?;
            }
            if !new.is_empty() {
                self.rest(environment).await?;
            }
            gone(environment, &new).await?;
        }
        for touched in self.0.iter().filter(|touched| !touched.is_new()) {
            let api_client = environment.place(touched.place.as_deref())?;
            restore(&api_client, touched).await?;
        }
        Ok(())
    }
}

/// Waits until these are gone everywhere.
async fn gone(environment: &Environment, new: &[&TouchedObject]) -> Result<(), PlayError> {
    let mut deadline = Deadline::of(environment.deadline());
    loop {
        let mut changes = ChangeDetector::now(environment).await?;
        let left = left_over(environment, new).await?;
        if left.is_empty() {
            return Ok(());
        }
        while !deadline.is_over() && !changes.has_changed(environment).await? {
            deadline.wait().await;
        }
        if deadline.is_over() {
            return Err(PlayError(format!("still there: {}", left.join(", "))));
        }
    }
}

/// New objects that still exist. Copies that controllers do not remove, because they are to be preserved, are deleted
/// on the way.
async fn left_over(environment: &Environment, new: &[&TouchedObject]) -> Result<Vec<String>, PlayError> {
    let control = environment.control();
    let mut left = Vec::new();
    for TouchedObject { place, reference, members, .. } in new {
        if environment.place(place.as_deref())?.get(reference).await?.is_some() {
            left.push(reference.to_string());
            continue;
        }
        if place.is_some() {
            continue;
        }
        let mut is_on_its_way = control.get(&binding_of(&control, reference).await?).await?.is_some();
        for member in environment.members() {
            is_on_its_way |= control.get(&work_of(&control, reference, &member).await?).await?.is_some();
        }
        if is_on_its_way {
            left.push(format!("what became of {reference}"));
            continue;
        }
        for member in environment.members().into_iter().filter(|member| !members.contains(member)) {
            let api_client = environment.member(&member)?;
            if let Some(object) = api_client.get(reference).await? {
                if !is_going(&object) {
                    delete(&api_client, reference).await?;
                }
                left.push(format!("{reference} in {member}"));
            }
        }
    }
    Ok(left)
}

fn is_going(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

async fn revision(api_client: &ApiClient, reference: &Reference) -> Result<String, PlayError> {
    let object = api_client.get(reference).await?.unwrap_or_default();
    Ok(object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned())
}

/// Deletes an object if it is there, whatever protects it.
async fn delete(api_client: &ApiClient, reference: &Reference) -> Result<(), PlayError> {
    let Some(object) = api_client.get(reference).await? else { return Ok(()) };
    if object["metadata"]["labels"].get(PROTECTION).is_some() {
        api_client.merge(reference, &json!({ "metadata": { "labels": { PROTECTION: null } } })).await?;
    }
    // No controller ever removes a finalizer that only a scenario uses.
    let finalizers = object["metadata"]["finalizers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_ours = |one: &&Value| !one.as_str().is_some_and(|one| one.starts_with("example.io/"));
    let kept: Vec<&Value> = finalizers.iter().filter(is_ours).collect();
    if kept.len() < finalizers.len() {
        api_client.merge(reference, &json!({ "metadata": { "finalizers": kept } })).await?;
    }
    let answer = api_client.delete(reference).await?;
    match answer.done || answer.body["code"] == 404 {
        true => Ok(()),
        false => Err(PlayError(format!("delete {reference}: {}", message(&answer.body)))),
    }
}

/// Gives an object the fields back that it had. One that is gone stays so.
async fn restore(api_client: &ApiClient, touched: &TouchedObject) -> Result<(), PlayError> {
    let Some(now) = api_client.get(&touched.reference).await? else { return Ok(()) };
    let patch = way_back(&users_part(&now), &users_part(&touched.before));
    if patch.is_empty() {
        return Ok(());
    }
    let answer = api_client.merge(&touched.reference, &Value::Object(patch)).await?;
    match answer.done {
        true => Ok(()),
        false => Err(PlayError(format!("restore {}: {}", touched.reference, message(&answer.body)))),
    }
}

/// What a user writes of an object.
fn users_part(object: &Value) -> Map<String, Value> {
    let mut part = object.as_object().cloned().unwrap_or_default();
    part.remove("status");
    let metadata = |key: &str| object["metadata"].get(key).cloned().unwrap_or_else(|| json!({}));
    let labels = json!({ "labels": metadata("labels"), "annotations": metadata("annotations") });
    part.insert("metadata".to_owned(), labels);
    part
}

/// The merge patch that leads from one to the other.
fn way_back(from: &Map<String, Value>, to: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for (key, value) in to {
        match (from.get(key), value) {
            (Some(now), value) if now == value => {}
            (Some(Value::Object(now)), Value::Object(fields)) => {
                patch.insert(key.clone(), Value::Object(way_back(now, fields)));
            }
            _ => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    patch.extend(from.keys().filter(|key| !to.contains_key(*key)).map(|key| (key.clone(), Value::Null)));
    patch
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::short::merge;

    #[track_caller]
    fn check(from: Value, to: Value, expected: Value) {
        let fields = |value: &Value| value.as_object().cloned().expect("it is a map");
        let patch = Value::Object(way_back(&fields(&from), &fields(&to)));
        assert_eq!(patch, expected);
        let mut reached = from;
        merge(&mut reached, &patch);
        assert_eq!(reached, to);
    }

    #[test]
    fn the_way_back_is_a_merge_patch() {
        check(json!({ "a": 1 }), json!({ "a": 1 }), json!({}));
        check(json!({ "a": 1, "b": 2 }), json!({ "a": 1 }), json!({ "b": null }));
        check(
            json!({ "a": { "b": 1, "c": [1] } }),
            json!({ "a": { "c": [2] }, "d": {} }),
            json!({ "a": { "b": null, "c": [2] }, "d": {} }),
        );
    }

    #[test]
    fn an_object_is_the_same_with_its_group_and_without() {
        let reference = |text: &str| text.parse::<Reference>().expect("it names an object");
        let touched = TouchedObject {
            place: None,
            reference: reference("Deployment.apps default/web"),
            before: Value::Null,
            members: Vec::new(),
        };
        assert!(touched.is_of(None, &reference("Deployment web")));
        assert!(!touched.is_of(Some("member1"), &reference("Deployment web")));
        assert!(!touched.is_of(None, &reference("Deployment.example.io web")));
        assert!(!touched.is_of(None, &reference("Deployment shop/web")));
    }
}
