//! Random sequences of edits, approvals, activations, rollbacks, taints and restarts: no act moves or deletes more than
//! the budget allows, unless it carries an approval, and no approval serves twice (M4).

use std::collections::{BTreeMap, BTreeSet};

use apiserver::admission::Operation;
use controllers::cache::{Cache, binding_key};
use decide::budget::{Effects, excess};
use decide::plan::restarted;
use decide::snapshot::Interpreters;
use decide::{BindingKey, Gates};
use plane::policy_impact::{Budget, PolicyImpact};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::acts::{annotated, update, write};
use super::{cluster, digest, policy, template};

const TEMPLATES: [&str; 4] = ["a", "b", "c", "d"];
const CLUSTERS: [&str; 3] = ["m1", "m2", "m3"];

#[derive(Debug, Clone)]
enum Act {
    /// The policy sends its templates there, lazily or at once.
    Edit { clusters: Vec<&'static str>, lazy: bool },
    /// The policy says what it said before.
    Undo,
    /// Every template is asked to follow now.
    Reconcile,
    /// A cluster is tainted, or the taint taken away.
    Taint { cluster: usize, on: bool },
    /// A template is changed by its user.
    Touch { template: usize },
    /// Controllers start anew, with or without static policies.
    Restart { is_static: bool },
}

fn acts() -> impl Strategy<Value = (Act, bool)> {
    let act = prop_oneof![
        4 => (prop::sample::subsequence(CLUSTERS.to_vec(), 1..=CLUSTERS.len()), any::<bool>())
            .prop_map(|(clusters, lazy)| Act::Edit { clusters, lazy }),
        2 => Just(Act::Undo),
        2 => Just(Act::Reconcile),
        2 => (0..CLUSTERS.len(), any::<bool>()).prop_map(|(cluster, on)| Act::Taint { cluster, on }),
        1 => (0..TEMPLATES.len()).prop_map(|template| Act::Touch { template }),
        1 => any::<bool>().prop_map(|is_static| Act::Restart { is_static }),
    ];
    // One in four is approved where that is asked for.
    (act, prop::bool::weighted(0.25))
}

/// A control plane in which what is admitted is done at once.
struct Plane {
    cache: Cache,
    policy_impact: PolicyImpact,
    budget: Budget,
    policy: Value,
    before: Value,
    clusters: BTreeMap<String, Value>,
    acts: u64,
    /// Every approval that was used.
    used: BTreeSet<String>,
}

impl Plane {
    fn new(budget: Budget) -> Self {
        let policy_impact = PolicyImpact::new(budget);
        let policy = policy("m1", json!({}));
        let clusters = CLUSTERS.iter().map(|name| ((*name).to_owned(), cluster(name))).collect();
        let cache = Cache::new(Gates::default());
        let mut plane = Self {
            cache,
            policy_impact,
            budget,
            before: policy.clone(),
            policy,
            clusters,
            acts: 0,
            used: BTreeSet::new(),
        };
        plane.clusters.values().for_each(|object| drop(plane.cache.put(object.clone())));
        TEMPLATES.iter().for_each(|name| drop(plane.cache.put(template(name))));
        plane.cache.put(plane.policy.clone());
        plane.cache.note_synced();
        plane.policy_impact.see(plane.cache.clone());
        plane.settle();
        plane
    }

    /// Where every template runs.
    fn places(&self) -> BTreeMap<BindingKey, BTreeSet<String>> {
        let snapshot = self.cache.snapshot();
        let places = snapshot.bindings.iter().map(|(key, binding)| {
            let names = binding.spec.clusters.iter().map(|target| target.name.clone()).collect();
            (BindingKey::clone(key), names)
        });
        places.collect()
    }

    /// The controllers do all there is to do, and the server counts the generations of bindings.
    fn settle(&mut self) {
        let mut snapshot = self.cache.snapshot().clone();
        let before = snapshot.bindings.clone();
        snapshot.settle_all(Interpreters::BUILT_IN);
        for template in snapshot.templates.iter() {
            self.cache.put(template.object());
        }
        for (key, binding) in snapshot.bindings.iter() {
            let mut binding = (**binding).clone();
            binding.metadata.uid = format!("{}/{}", key.namespace, key.name);
            let old = before.get(key);
            let changed = old.is_none_or(|old| old.spec != binding.spec);
            binding.metadata.generation = old.map_or(0, |old| old.metadata.generation) + i64::from(changed);
            self.cache.put_binding(binding_key(&binding.metadata), binding);
        }
    }

    /// Sends an object as a user does; with `approve` once more, with what the refusal asks for. True where an approval
    /// was used.
    fn send(&mut self, old: &Value, new: &Value, approve: bool) -> (Option<Value>, bool) {
        let refusal = match update(&self.policy_impact, old, new) {
            Ok((_, stored)) => return (Some(stored), false),
            Err(refusal) => refusal,
        };
        // An approval that served before serves no more, whatever the change is.
        for used in &self.used {
            assert!(
                update(&self.policy_impact, old, &annotated(new, "longshore.io/approved-plan", used))
                    .is_err(),
                "{used}"
            );
        }
        if !approve {
            return (None, false);
        }
        let digest = digest(&refusal).to_owned();
        let approved = annotated(new, "longshore.io/approved-plan", &digest);
        let (_, stored) = update(&self.policy_impact, old, &approved).expect("it is approved");
        assert!(stored["metadata"]["annotations"].get("longshore.io/approved-plan").is_none(), "{stored}");
        assert!(self.used.insert(digest), "every plan has its own digest");
        (Some(stored), true)
    }

    /// Writes another spec of the policy.
    fn edit(&mut self, spec: Value, approve: bool) -> bool {
        let mut next = self.policy.clone();
        next["spec"] = spec;
        let (stored, approved) = self.send(&self.policy.clone(), &next, approve);
        if let Some(mut stored) = stored.filter(|stored| stored["spec"] != self.policy["spec"]) {
            stored["metadata"]["generation"] =
                (self.policy["metadata"]["generation"].as_i64().unwrap_or(0) + 1).into();
            self.before = std::mem::replace(&mut self.policy, stored.clone());
            self.cache.put(stored);
        }
        approved
    }

    fn template(&self, name: &str) -> Value {
        let snapshot = self.cache.snapshot();
        snapshot.templates.iter().find(|template| template.key.name == name).expect("it is there").object()
    }

    /// Does it; true where an approval let it go further than allowed.
    fn act(&mut self, act: &Act, approve: bool) -> bool {
        self.acts += 1;
        match act {
            Act::Edit { clusters, lazy } => {
                let mut spec = policy("m1", json!({}))["spec"].clone();
                spec["placement"]["clusterAffinity"]["clusterNames"] = json!(clusters);
                if *lazy {
                    spec["activationPreference"] = "Lazy".into();
                }
                self.edit(spec, approve)
            }
            Act::Undo => self.edit(self.before["spec"].clone(), approve),
            Act::Reconcile => {
                let value = format!("{:020}", self.acts);
                let mut approved = false;
                for name in TEMPLATES {
                    let old = self.template(name);
                    let new = annotated(&old, "longshore.io/reconcile", &value);
                    let (stored, used) = self.send(&old, &new, approve);
                    approved |= used;
                    stored.into_iter().for_each(|stored| drop(self.cache.put(stored)));
                    self.settle();
                }
                approved
            }
            Act::Taint { cluster, on } => {
                let old = self.clusters[CLUSTERS[*cluster]].clone();
                let mut new = old.clone();
                new["spec"]["taints"] =
                    if *on { json!([{ "key": "broken", "effect": "NoExecute" }]) } else { json!([]) };
                if new["spec"] == old["spec"] {
                    return false;
                }
                new["metadata"]["generation"] = self.acts.into();
                let (stored, approved) = self.send(&old, &new, approve);
                if let Some(stored) = stored {
                    self.clusters.insert(CLUSTERS[*cluster].to_owned(), stored.clone());
                    self.cache.put(stored);
                }
                approved
            }
            Act::Touch { template } => {
                let old = self.template(TEMPLATES[*template]);
                let mut new = old.clone();
                new["metadata"]["labels"]["touched"] = self.acts.to_string().into();
                new["metadata"]["resourceVersion"] = (self.acts + 1).to_string().into();
                let stored =
                    write(&self.policy_impact, Operation::Update, Some(&old), &new).expect("users may");
                self.cache.put(stored.1);
                false
            }
            Act::Restart { is_static } => {
                let gates = Gates { static_policy: *is_static, ..Gates::default() };
                let snapshot = self.cache.snapshot().clone();
                let plan = restarted(&snapshot, gates.clone(), Interpreters::BUILT_IN);
                let held = excess(&snapshot, &plan, self.budget, |_| Effects::default()).is_some();
                if !held || approve {
                    self.regate(gates);
                }
                held && approve
            }
        }
    }

    /// The controllers with other feature gates.
    fn regate(&mut self, gates: Gates) {
        let cache = Cache::new(gates);
        self.clusters.values().for_each(|object| drop(cache.put(object.clone())));
        let snapshot = self.cache.snapshot().clone();
        snapshot.templates.iter().for_each(|template| drop(cache.put(template.object())));
        for binding in snapshot.bindings.values() {
            cache.put_binding(binding_key(&binding.metadata), (**binding).clone());
        }
        cache.put(self.policy.clone());
        cache.note_synced();
        self.policy_impact.see(cache.clone());
        self.cache = cache;
    }
}

/// What happened between two states.
fn effects(
    before: &BTreeMap<BindingKey, BTreeSet<String>>,
    after: &BTreeMap<BindingKey, BTreeSet<String>>,
) -> Effects {
    let mut effects = Effects::default();
    for (key, places) in before {
        let now = after.get(key).cloned().unwrap_or_default();
        let (left, entered) = (places.difference(&now).count(), now.difference(places).count());
        let moved = usize::from(left > 0 && entered > 0);
        effects = effects.and(Effects { moved, deleted: left });
    }
    effects
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_act_does_more_than_is_allowed(
        max_moved in 0_usize..4,
        max_deleted in prop::option::of(0_usize..5),
        sequence in prop::collection::vec(acts(), 1..12),
    ) {
        let budget = Budget { moved: Some(max_moved), deleted: max_deleted };
        let mut plane = Plane::new(budget);
        for (act, approve) in sequence {
            let before = plane.places();
            let approved = plane.act(&act, approve);
            plane.settle();
            let done = effects(&before, &plane.places());
            // A user's change of a template is an act on that template alone.
            let is_own = matches!(act, Act::Touch { .. });
            let allowed = done.moved <= max_moved && max_deleted.is_none_or(|max| done.deleted <= max);
            prop_assert!(approved || is_own || allowed, "{act:?}: {done:?} with {budget:?}");
            prop_assert!(!is_own || done.moved <= 1, "{act:?}: {done:?}");
        }
    }
}
