//! What a change of a policy would do, told to whoever makes it: as warnings, and as a refusal where it would move
//! or delete more than somebody allowed. Asks `decide` about the world as the controllers know it.

use std::sync::{Arc, Mutex};

use apiserver::admission::{Attributes, Operation};
use apiserver::error::{ApiError, Subject};
use controllers::view::View;
use decide::plan::{Plan, plan};
use decide::remarks::warnings;
use decide::template::digest;
use decide::world::{Answers, Change};
use decide::{PolicyKey, World, unknown_clusters};
use jiff::Timestamp;
use serde_json::{Value, json};
use supervise::Recovered as _;

/// How many templates one change of this policy may move at most.
const MAX_MOVED: &str = "longshore.io/max-moved";
/// How many objects in members one change of this policy may delete at most.
const MAX_DELETED: &str = "longshore.io/max-deleted";
/// The plan that whoever asks for a change has seen, by its digest.
pub const APPROVED: &str = "longshore.io/approved-plan";

/// How much one change may do; nothing said is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Budget {
    /// Templates that leave a cluster and enter another one.
    pub moved: Option<usize>,
    /// Objects that vanish from a member.
    pub deleted: Option<usize>,
}

/// What the controllers know, as soon as they know all of it, and what applies where a policy says nothing. Clones
/// share it.
#[derive(Clone, Default)]
pub struct Outlook {
    view: Arc<Mutex<Option<View>>>,
    budget: Budget,
}

impl Outlook {
    /// An outlook with this budget for the whole control plane; it sees nothing yet.
    pub fn new(budget: Budget) -> Self {
        Self { budget, ..Self::default() }
    }

    /// From now on it sees what these controllers see.
    pub fn see(&self, view: View) {
        *self.view.lock().recovered() = Some(view);
    }

    /// The world now; none before everything in it is known.
    fn world(&self, now: Timestamp) -> Option<World> {
        let view = self.view.lock().recovered().clone()?;
        view.is_complete().then(|| World { now, ..view.world().clone() })
    }

    /// What there is to say about a change of a policy; nothing about other kinds, or where it says the same as
    /// before.
    pub(crate) fn judge(
        &self,
        attributes: &Attributes<'_>,
        object: &Value,
        now: Timestamp,
    ) -> Result<Vec<String>, ApiError> {
        check_numbers(attributes, object)?;
        let Some(change) = change(attributes, object, now) else {
            return Ok(self.unknown_clusters(attributes, object, now));
        };
        let Some(world) = self.world(now) else { return self.unseen(attributes, object) };
        let planned = match plan(&world, std::slice::from_ref(&change), Answers::BRAIN) {
            Ok(planned) => planned,
            Err(error) => return Ok(vec![format!("What it would do cannot be told: {error}.")]),
        };
        self.check_budget(attributes, object, &planned)?;
        let mut after = world;
        // What was planned can be made.
        let _ = after.apply(&change);
        Ok(warnings(&after, &key(object), &planned, Answers::BRAIN))
    }

    /// Clusters that an override or rollout policy names and that do not exist.
    fn unknown_clusters(&self, attributes: &Attributes<'_>, object: &Value, now: Timestamp) -> Vec<String> {
        let says_the_same = attributes.old.is_some_and(|old| old["spec"] == object["spec"]);
        let is_concerned = attributes.group == api::kinds::POLICY_GROUP && !says_the_same;
        if !is_concerned || attributes.operation == Operation::Delete {
            return Vec::new();
        }
        let Some(world) = self.world(now) else { return Vec::new() };
        unknown_clusters::in_object(object, &world.clusters).iter().map(ToString::to_string).collect()
    }

    /// The same for those who answer questions about it.
    pub(crate) fn known(&self, now: Timestamp) -> Option<World> {
        self.world(now)
    }

    /// Before everything is known nobody can say what a change does; where that matters it has to wait.
    fn unseen(&self, attributes: &Attributes<'_>, object: &Value) -> Result<Vec<String>, ApiError> {
        let limits = [(MAX_MOVED, self.budget.moved), (MAX_DELETED, self.budget.deleted)];
        match limits.into_iter().any(|(mark, usual)| allowed(attributes, object, mark, usual).is_some()) {
            true => Err(ApiError::unavailable(
                "the control plane has just started and does not know yet whether this change keeps to its \
                 budget; try again in a moment",
            )),
            false => Ok(Vec::new()),
        }
    }

    /// Refuses what goes beyond the budget, unless it is the very plan that was seen. What was allowed before the
    /// change counts as well: who takes the limit away is bound by it one more time.
    fn check_budget(
        &self,
        attributes: &Attributes<'_>,
        object: &Value,
        planned: &Plan,
    ) -> Result<(), ApiError> {
        let allowed = |mark: &str, usual: Option<usize>| allowed(attributes, object, mark, usual);
        let totals = &planned.totals;
        let limits = [
            (totals.moved, allowed(MAX_MOVED, self.budget.moved), "move", "templates", MAX_MOVED),
            (totals.deleted, allowed(MAX_DELETED, self.budget.deleted), "delete", "objects", MAX_DELETED),
        ];
        let Some((count, max, verb, what, mark)) =
            limits.into_iter().find_map(|(count, max, verb, what, mark)| {
                Some((count, max.filter(|max| count > *max)?, verb, what, mark))
            })
        else {
            return Ok(());
        };
        let seen = digest(&json!(planned));
        if annotation(object, APPROVED) == Some(seen.as_str()) {
            return Ok(());
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let subject = Subject { group: attributes.group, resource: attributes.resource, name };
        let why = format!(
            "it would {verb} {count} {what}, and {mark} allows {max}. {totals} Look at it with `longshore plan`; to do it \
             nevertheless, annotate the policy with {APPROVED}={seen}"
        );
        Err(ApiError::forbidden(subject, why))
    }
}

/// How much is allowed, by the policy as it was or as it will be, or else in general.
fn allowed(attributes: &Attributes<'_>, object: &Value, mark: &str, usual: Option<usize>) -> Option<usize> {
    let policies = [Some(object), attributes.old].into_iter().flatten();
    policies.filter_map(|policy| annotation(policy, mark)?.parse().ok()).min().or(usual)
}

/// A limit that nobody can read would be none, so it is not taken.
fn check_numbers(attributes: &Attributes<'_>, object: &Value) -> Result<(), ApiError> {
    if !is_policy(attributes) || attributes.operation == Operation::Delete {
        return Ok(());
    }
    for mark in [MAX_MOVED, MAX_DELETED] {
        let Some(text) = annotation(object, mark).filter(|text| text.parse::<usize>().is_err()) else {
            continue;
        };
        // What is there already was taken by somebody else, and must not keep others from their work.
        if attributes.old.and_then(|old| annotation(old, mark)) != Some(text) {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let subject = Subject { group: attributes.group, resource: attributes.resource, name };
            return Err(ApiError::forbidden(
                subject,
                format!("{mark} is {text:?}; it has to be a number, such as 10"),
            ));
        }
    }
    Ok(())
}

fn is_policy(attributes: &Attributes<'_>) -> bool {
    let is_kind = matches!(attributes.kind, "PropagationPolicy" | "ClusterPropagationPolicy");
    is_kind && attributes.group == api::kinds::POLICY_GROUP
}

/// The change of a policy, as it will be once it is written; none if it is about something else, or says nothing new.
fn change(attributes: &Attributes<'_>, object: &Value, now: Timestamp) -> Option<Change> {
    if !is_policy(attributes) {
        return None;
    }
    if attributes.operation == Operation::Delete {
        let PolicyKey { namespace, name } = key(object);
        let api_version = format!("{}/{}", attributes.group, attributes.version);
        return Some(Change::Delete { api_version, kind: attributes.kind.to_owned(), namespace, name });
    }
    let mut next = object.clone();
    if let Some(old) = attributes.old {
        if old["spec"] == object["spec"] {
            return None;
        }
        next["metadata"]["generation"] = (old["metadata"]["generation"].as_i64().unwrap_or(0) + 1).into();
        if let Some(owners) = next["metadata"].get_mut("managedFields").and_then(Value::as_array_mut)
            && old["spec"]["resourceSelectors"] != object["spec"]["resourceSelectors"]
        {
            // Who owns what is settled later; by when selectors were edited it is judged who came first (R3).
            let second = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            owners.push(json!({ "time": second, "fieldsV1": { "f:spec": { "f:resourceSelectors": {} } } }));
        }
    }
    // Whatever is there already was there before it.
    next["metadata"]["resourceVersion"] = u64::MAX.to_string().into();
    Some(Change::Put(Arc::new(next)))
}

fn key(object: &Value) -> PolicyKey {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    PolicyKey { namespace: text("namespace"), name: text("name") }
}

fn annotation<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object["metadata"]["annotations"].get(key)?.as_str()
}
