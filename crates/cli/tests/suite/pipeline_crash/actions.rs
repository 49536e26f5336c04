//! Random user actions. Every action is idempotent, because a user who gets no answer repeats it.

use std::collections::BTreeMap;

use checks::random::SeededRandom;
use http::Method;
use serde_json::{Value, json};

use super::side::MEMBERS;
use super::state::State;

pub const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
pub const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const POLICIES: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies";

/// What an action promises not to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// Nothing but what every action promises.
    Plain,
    /// The members do not notice it.
    Unnoticed,
}

/// One request of a user.
#[derive(Debug, Clone)]
pub struct Action {
    /// The member it is sent to; the control plane if none.
    pub member: Option<usize>,
    pub method: Method,
    pub path: String,
    pub body: Value,
    pub promise: Promise,
}

impl Action {
    fn control(method: Method, path: String, body: Value) -> Self {
        Self { member: None, method, path, body, promise: Promise::Plain }
    }
}

/// What the user knows to be there.
#[derive(Default)]
pub struct Plan {
    step: u64,
    /// Paths of templates.
    templates: Vec<String>,
    /// Policies by name; true for lazy ones.
    policies: BTreeMap<String, bool>,
}

impl Plan {
    /// The next action.
    pub fn next(&mut self, random: &mut SeededRandom, state: &State) -> Action {
        self.step += 1;
        // There is nothing to play with before there are some of both.
        let roll = if self.step <= 8 { self.step % 2 * 9 } else { random.below(20) };
        let action = match roll {
            0..=3 => self.create_template(random),
            4..=7 => self.edit_template(random),
            8 => self.delete_template(random),
            9..=11 => self.create_policy(random),
            12 => self.delete_policy(random),
            13 | 14 => self.retarget(random),
            15..=17 => self.suspend_or_resume(random),
            _ => drift(random, state, self.step),
        };
        action.unwrap_or_else(|| self.next(random, state))
    }

    fn create_template(&mut self, random: &mut SeededRandom) -> Option<Action> {
        let group = ["a", "b"][below(random, 2)];
        let name = format!("{group}{}", random.below(4));
        let metadata = json!({ "name": name, "labels": { "group": group } });
        let (collection, object) = match random.below(3) {
            0 => (
                CONFIG_MAPS,
                json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "step": "0" } }),
            ),
            _ => (DEPLOYMENTS, deployment(&name, &metadata)),
        };
        let path = format!("{collection}/{name}");
        if self.templates.contains(&path) {
            return None;
        }
        self.templates.push(path);
        Some(Action::control(Method::POST, collection.to_owned(), object))
    }

    fn edit_template(&self, random: &mut SeededRandom) -> Option<Action> {
        let path = pick(random, &self.templates)?.clone();
        let body = match path.starts_with(DEPLOYMENTS) {
            true => json!({ "spec": { "replicas": 1 + self.step % 3, "template": { "spec": { "containers": [
                { "name": "main", "image": format!("nginx:{}", self.step) },
            ] } } } }),
            false => json!({ "data": { "step": self.step.to_string() } }),
        };
        Some(Action::control(Method::PATCH, path, body))
    }

    fn delete_template(&mut self, random: &mut SeededRandom) -> Option<Action> {
        let path = pick(random, &self.templates)?.clone();
        self.templates.retain(|one| *one != path);
        Some(Action::control(Method::DELETE, path, json!({})))
    }

    fn create_policy(&mut self, random: &mut SeededRandom) -> Option<Action> {
        let name = format!("p{}", random.below(5));
        if self.policies.contains_key(&name) {
            return None;
        }
        let kind = [("apps/v1", "Deployment"), ("v1", "ConfigMap")][below(random, 2)];
        let mut selector = json!({ "apiVersion": kind.0, "kind": kind.1 });
        // The control plane has ConfigMaps of its own, which a policy for all ConfigMaps would select.
        if random.below(2) == 0 || kind.1 == "ConfigMap" {
            let group = ["a", "b"][below(random, 2)];
            selector["labelSelector"] = json!({ "matchLabels": { "group": group } });
        }
        let lazy = random.below(3) == 0;
        let preemption = ["Never", "Always"][below(random, 2)];
        let mut spec = json!({
            "resourceSelectors": [selector],
            "placement": placement(random),
            "conflictResolution": "Overwrite",
            "priority": random.below(3),
            "preemption": preemption,
            "preserveResourcesOnDeletion": random.below(4) == 0,
        });
        if lazy {
            spec["activationPreference"] = "Lazy".into();
        }
        let policy = json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "metadata": { "name": name }, "spec": spec,
        });
        self.policies.insert(name, lazy);
        Some(Action::control(Method::POST, POLICIES.to_owned(), policy))
    }

    fn delete_policy(&mut self, random: &mut SeededRandom) -> Option<Action> {
        let (name, _) = self.any_policy(random)?;
        self.policies.remove(&name);
        Some(Action::control(Method::DELETE, format!("{POLICIES}/{name}"), json!({})))
    }

    fn retarget(&self, random: &mut SeededRandom) -> Option<Action> {
        let (name, lazy) = self.any_policy(random)?;
        let body = json!({ "spec": { "placement": placement(random) } });
        let promise = if lazy { Promise::Unnoticed } else { Promise::Plain };
        Some(Action { promise, ..Action::control(Method::PATCH, format!("{POLICIES}/{name}"), body) })
    }

    fn suspend_or_resume(&self, random: &mut SeededRandom) -> Option<Action> {
        let (name, _) = self.any_policy(random)?;
        let (suspension, promise) = match random.below(2) {
            0 => (json!({ "dispatching": true }), Promise::Unnoticed),
            _ => (Value::Null, Promise::Plain),
        };
        let body = json!({ "spec": { "suspension": suspension } });
        Some(Action { promise, ..Action::control(Method::PATCH, format!("{POLICIES}/{name}"), body) })
    }

    fn any_policy(&self, random: &mut SeededRandom) -> Option<(String, bool)> {
        let names: Vec<(&String, &bool)> = self.policies.iter().collect();
        pick(random, &names).map(|(name, lazy)| ((*name).clone(), **lazy))
    }
}

/// A user of a member changes or deletes an object there (drift).
fn drift(random: &mut SeededRandom, state: &State, step: u64) -> Option<Action> {
    let member = below(random, MEMBERS.len());
    let paths: Vec<&String> = state.members[MEMBERS[member]].keys().collect();
    let path = (*pick(random, &paths)?).clone();
    let (method, body) = match (random.below(3), path.starts_with(DEPLOYMENTS)) {
        (0, _) => (Method::DELETE, json!({})),
        (_, true) => (Method::PATCH, json!({ "spec": { "replicas": 4 + step % 2 } })),
        (_, false) => (Method::PATCH, json!({ "data": { "step": format!("drift {step}") } })),
    };
    Some(Action { member: Some(member), method, path, body, promise: Promise::Plain })
}

fn deployment(name: &str, metadata: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "main", "image": "nginx" }] },
            },
        },
    })
}

/// One to three members.
fn placement(random: &mut SeededRandom) -> Value {
    let chosen = 1 + random.below(7);
    let names: Vec<&str> = MEMBERS
        .iter()
        .enumerate()
        .filter(|(bit, _)| chosen & (1 << bit) != 0)
        .map(|(_, name)| *name)
        .collect();
    json!({ "clusterAffinity": { "clusterNames": names } })
}

fn below(random: &mut SeededRandom, limit: usize) -> usize {
    usize::try_from(random.below(limit as u64)).expect("an index")
}

fn pick<'a, T>(random: &mut SeededRandom, all: &'a [T]) -> Option<&'a T> {
    (!all.is_empty()).then(|| &all[below(random, all.len())])
}
