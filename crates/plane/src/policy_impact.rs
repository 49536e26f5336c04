//! Policy impact at admission (dry run): returns the effects of a write to its client as admission warnings, and
//! rejects it where it would move or delete more than the budget allows (M4). Asks `decide` about the controllers'
//! informer cache.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use api::kinds;
use api::records::{APPROVED_PLAN, MAX_DELETED, MAX_MOVED};
use apimachinery::error::{ApiError, Subject};
use apiserver::admission::{Attributes, Operation};
use controllers::cache::Cache;
use decide::admission_warnings::{self, warnings};
use decide::budget::{self, Effects, Excess, approval, left_nowhere, shares};
use decide::plan::{Plan, plan, unbound};
use decide::snapshot::{Change, ChangeError, Interpreters};
use decide::template::BindingKey;
use decide::{PolicyKey, Snapshot, unknown_clusters};
use jiff::Timestamp;
use serde_json::Value;
use supervise::Recovered as _;

mod act;
mod spent;
mod unknown;

use act::{Act, act, taken_along};
pub use decide::budget::Budget;
use spent::Spent;

/// Users that end what another request began, which was judged then.
const CLEANUP_CONTROLLERS: [&str; 3] = [
    apiserver::authn::CONTROLLERS,
    "system:serviceaccount:kube-system:namespace-controller",
    "system:serviceaccount:kube-system:generic-garbage-collector",
];

/// What the controllers know, as soon as they know all of it, and what applies where an object says nothing. Clones
/// share it.
#[derive(Clone, Default)]
pub struct PolicyImpact {
    cache: Arc<Mutex<Option<Cache>>>,
    budget: Budget,
    controllers: Controllers,
    refuses_unknown_clusters: bool,
    spent: Spent,
}

/// How the controllers' own writes, which follow from what was judged before, are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Controllers {
    /// They are in this process, under an identity that no other client has.
    #[default]
    InProcess,
    /// They come through the network as this user. Where it is not known, nothing is judged that they write.
    User(Option<String>),
}

/// What is known before a write, and what it would do.
struct Judged {
    snapshot: Snapshot,
    plan: Plan,
    changes: Vec<Change>,
}

impl PolicyImpact {
    /// A policy impact check with this budget for the whole control plane; it sees nothing yet.
    pub fn new(budget: Budget) -> Self {
        Self { budget, ..Self::default() }
    }

    /// The same, for controllers that come through the network as this user.
    pub fn with_controllers(self, user: Option<String>) -> Self {
        Self { controllers: Controllers::User(user), ..self }
    }

    /// The same; policies that name clusters which do not exist are refused, unless they say otherwise.
    pub fn refusing_unknown_clusters(self, refuses_unknown_clusters: bool) -> Self {
        Self { refuses_unknown_clusters, ..self }
    }

    /// From now on it sees what these controllers see.
    pub fn see(&self, cache: Cache) {
        *self.cache.lock().recovered() = Some(cache);
    }

    /// What applies where an object says nothing.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    fn cache(&self) -> Option<Cache> {
        self.cache.lock().recovered().clone()
    }

    /// The current snapshot; none before every informer has synced.
    fn snapshot(&self, now: Timestamp) -> Option<Snapshot> {
        let cache = self.cache()?;
        cache.is_synced().then(|| Snapshot { now, ..cache.snapshot().clone() })
    }

    /// What there is to say about a write; nothing where it changes nothing that templates depend on. An approval that
    /// came with it is used up: it is taken out of the object.
    pub(crate) fn judge(
        &self,
        attributes: &Attributes<'_>,
        object: &mut Value,
        now: Timestamp,
    ) -> Result<Vec<String>, ApiError> {
        check_numbers(attributes, object)?;
        if self.is_own(attributes) {
            return Ok(Vec::new());
        }
        let Some(act) = act(attributes, object, now) else {
            return Ok(self.keep_approval(attributes, object, now));
        };
        let Some(snapshot) = self.snapshot(now) else { return self.unseen(attributes, object, &act) };
        unknown::check(attributes, object, &snapshot, self.refuses_unknown_clusters)?;
        let judged = match judged(attributes, object, &act, snapshot) {
            Ok(judged) => judged,
            Err(error) => return Ok(vec![format!("Its effect cannot be computed: {error}.")]),
        };
        self.check_budget(attributes, object, &act, &judged)?;
        remove_approval(attributes, object);
        Ok(said(object, judged))
    }

    /// Whether it is a write of the controllers, or one that ends what another request began.
    fn is_own(&self, attributes: &Attributes<'_>) -> bool {
        let user = attributes.identity.user.as_str();
        let is_theirs = match attributes.group {
            kinds::WORK_GROUP => true,
            kinds::CLUSTER_GROUP => attributes.operation != Operation::Delete,
            _ => false,
        };
        let comes_from_them = match &self.controllers {
            Controllers::InProcess => false,
            Controllers::User(own) => own.as_deref().is_none_or(|own| own == user),
        };
        attributes.identity.is_untracked
            || CLEANUP_CONTROLLERS.contains(&user)
            || (is_theirs && comes_from_them)
    }

    /// The same for the extension API.
    pub(crate) fn known(&self, now: Timestamp) -> Option<Snapshot> {
        self.snapshot(now)
    }

    /// Before the informers have synced the effects of a change are unknown; where they matter the write has to wait.
    fn unseen(
        &self,
        attributes: &Attributes<'_>,
        object: &Value,
        act: &Act,
    ) -> Result<Vec<String>, ApiError> {
        // Which policies have a budget is not known either.
        let concerns_policies = !is_policy(attributes) && self.cache().is_some() && self.is_limiting(act);
        match allowed(attributes, object, self.budget).is_limited() || concerns_policies {
            true => Err(ApiError::unavailable(
                "the control plane has just started and cannot check the budget of this change until its \
                 informers have synced; try again in a moment",
            )),
            false => Ok(Vec::new()),
        }
    }

    /// Whether an act can take anything away; overrides, for example, only change what is there.
    fn is_limiting(&self, act: &Act) -> bool {
        match act {
            Act::Unbind | Act::Reconcile(..) => true,
            Act::Changes(changes) => changes.iter().any(|change| match change {
                Change::Delete { kind, .. } => {
                    matches!(kind.as_str(), "Cluster" | "Namespace" | "CustomResourceDefinition")
                }
                Change::Put(object) => object["kind"] == "Cluster",
            }),
        }
    }

    /// Refuses what exceeds a budget, unless it is the very plan that was approved. The limit before the change counts
    /// as well: a client that removes the limit is bound by it one more time.
    fn check_budget(
        &self,
        attributes: &Attributes<'_>,
        object: &Value,
        act: &Act,
        judged: &Judged,
    ) -> Result<(), ApiError> {
        let Judged { snapshot, plan, .. } = judged;
        let budget = allowed(attributes, object, self.budget);
        let value = match act {
            Act::Reconcile(_, value) => Some(value.as_str()),
            Act::Changes(_) | Act::Unbind => None,
        };
        let spent =
            |policy: Option<&PolicyKey>| value.map(|value| self.spent.of(value, policy)).unwrap_or_default();
        let is_edit = is_policy(attributes) && attributes.operation == Operation::Update;
        let nowhere = || left_nowhere(plan).filter(|_| is_edit);
        let Some(excess) = budget::excess(snapshot, plan, budget, spent).or_else(nowhere) else {
            if let Some(value) = value.filter(|_| !attributes.dry_run) {
                let shares = shares(snapshot, plan).into_iter();
                let shares = shares.map(|(policy, share)| (Some(policy.key.clone()), share));
                self.spent.add(value, shares.chain([(None, Effects::of(plan))]));
            }
            return Ok(());
        };
        let digest = approval(snapshot, plan, &subject(attributes, object));
        match annotation(object, APPROVED_PLAN) == Some(digest.as_str()) {
            true => Ok(()),
            false => Err(refusal(attributes, object, &excess, plan, &digest)),
        }
    }

    /// An approval that comes by itself is one of the object's deletion, or it is for nothing and is not kept.
    fn keep_approval(&self, attributes: &Attributes<'_>, object: &mut Value, now: Timestamp) -> Vec<String> {
        let deletes = attributes.operation == Operation::Delete;
        let Some(approved) = annotation(object, APPROVED_PLAN).filter(|_| !deletes) else {
            return Vec::new();
        };
        let Some(snapshot) = self.snapshot(now) else { return Vec::new() };
        let deletion = Attributes { operation: Operation::Delete, ..*attributes };
        let digest = act(&deletion, object, now).and_then(|act| {
            let judged = judged(&deletion, object, &act, snapshot).ok()?;
            Some(approval(&judged.snapshot, &judged.plan, &subject(&deletion, object)))
        });
        if digest.as_deref() == Some(approved) {
            return Vec::new();
        }
        remove_approval(attributes, object);
        vec![format!(
            "{APPROVED_PLAN} is not the digest of a plan of this change or of a deletion, so it approves \
             nothing."
        )]
    }
}

/// What a write would do.
fn judged(
    attributes: &Attributes<'_>,
    object: &Value,
    act: &Act,
    snapshot: Snapshot,
) -> Result<Judged, ChangeError> {
    let changes = match act {
        Act::Unbind => {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            let plan = unbound(&snapshot, &BindingKey { namespace: text("namespace"), name: text("name") });
            return Ok(Judged { snapshot, plan, changes: Vec::new() });
        }
        Act::Reconcile(change, _) => vec![change.clone()],
        Act::Changes(changes) => {
            taken_along(attributes, object, &snapshot).unwrap_or_else(|| changes.clone())
        }
    };
    let plan = plan(&snapshot, &changes, Interpreters::BUILT_IN)?;
    Ok(Judged { snapshot, plan, changes })
}

/// What there is to say about a write that is let through.
fn said(object: &Value, judged: Judged) -> Vec<String> {
    let Judged { snapshot: mut after, plan, changes } = judged;
    for change in &changes {
        // What was planned can be made.
        let _ = after.apply(change);
    }
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let is_policy = matches!(object["kind"].as_str(), Some("PropagationPolicy" | "ClusterPropagationPolicy"));
    let key = PolicyKey { namespace: text("namespace"), name: text("name") };
    match is_policy {
        true => warnings(&after, &key, &plan, Interpreters::BUILT_IN),
        false => {
            let is_written = changes.iter().any(|change| matches!(change, Change::Put(_)));
            let unknown =
                unknown_clusters::in_object(object, &after.clusters).into_iter().filter(|_| is_written);
            let unknown = unknown.map(|unknown| unknown.to_string());
            admission_warnings::totals(&plan)
                .into_iter()
                .chain(admission_warnings::nowhere(&plan))
                .chain(unknown)
                .collect()
        }
    }
}

fn refusal(
    attributes: &Attributes<'_>,
    object: &Value,
    excess: &Excess,
    plan: &Plan,
    digest: &str,
) -> ApiError {
    let first = if attributes.operation == Operation::Delete { "first " } else { "" };
    let why = format!(
        "{excess}. {} See it with `longshore plan`; to make the change anyway, {first}annotate the {} with \
         {APPROVED_PLAN}={digest}",
        plan.totals, attributes.kind,
    );
    ApiError::forbidden(named(attributes, object), why)
}

fn named<'a>(attributes: &Attributes<'a>, object: &'a Value) -> Subject<'a> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    Subject { group: attributes.group, resource: attributes.resource, name }
}

fn subject(attributes: &Attributes<'_>, object: &Value) -> budget::Subject {
    match attributes.operation {
        Operation::Delete => budget::Subject::deleted(object),
        Operation::Create | Operation::Update => budget::Subject::written(object, attributes.old),
    }
}

/// How much is allowed, by the object as it was or as it will be, or else in general.
fn allowed(attributes: &Attributes<'_>, object: &Value, usual: Budget) -> Budget {
    let on = |object: &Value| {
        let limit = |key: &str| annotation(object, key).map(|value| (key.to_owned(), value.to_owned()));
        let limits: BTreeMap<String, String> =
            [MAX_MOVED, MAX_DELETED].into_iter().filter_map(limit).collect();
        Budget::on(&limits)
    };
    let old = attributes.old.map(on).unwrap_or_default();
    on(object).stricter(old).or(usual)
}

/// A limit that cannot be parsed would be no limit, so it is refused.
fn check_numbers(attributes: &Attributes<'_>, object: &Value) -> Result<(), ApiError> {
    if attributes.operation == Operation::Delete {
        return Ok(());
    }
    for mark in [MAX_MOVED, MAX_DELETED] {
        let Some(text) = annotation(object, mark).filter(|text| text.parse::<usize>().is_err()) else {
            continue;
        };
        // An existing invalid value was accepted earlier, and must not block other changes.
        if attributes.old.and_then(|old| annotation(old, mark)) != Some(text) {
            let why = format!("{mark} is {text:?}; it has to be a number, such as 10");
            return Err(ApiError::forbidden(named(attributes, object), why));
        }
    }
    Ok(())
}

fn is_policy(attributes: &Attributes<'_>) -> bool {
    let is_kind = matches!(attributes.kind, "PropagationPolicy" | "ClusterPropagationPolicy");
    is_kind && attributes.group == kinds::POLICY_GROUP
}

/// Takes an approval out of what is stored.
fn remove_approval(attributes: &Attributes<'_>, object: &mut Value) {
    if attributes.operation == Operation::Delete {
        return;
    }
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    annotations.remove(APPROVED_PLAN);
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
}

fn annotation<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object["metadata"]["annotations"].get(key)?.as_str()
}
