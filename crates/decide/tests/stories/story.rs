//! The story runner: a snapshot, simulated members, and what is expected of both after each step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::binding::TargetCluster;
use api::{Binding, Cluster, PropagationPolicy, RolloutPolicy, kinds};
use decide::binding::{Rollout, is_held};
use decide::claim::claim_on;
use decide::snapshot::Interpreters;
use decide::works::{Sources, works};
use decide::{Policy, PolicyKey, Snapshot, Template, TemplateKey};
use serde_json::{Value, json};

use crate::words;

/// How a story is run; the outcome must not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Every controller looks at everything after each step.
    Plain,
    /// The same, and then once more from scratch, as after a restart.
    Restarts,
    /// Only what the index calls touched is looked at.
    Touched,
    /// As plain, but the clock stands still.
    OneSecond,
    /// As plain, but controllers crash when they have written the claims, before they write any binding.
    Crashes,
}

/// A control plane with members.
pub struct Story {
    pub snapshot: Snapshot,
    way: Way,
    policies: BTreeMap<PolicyKey, PropagationPolicy>,
    templates: BTreeMap<Arc<TemplateKey>, Value>,
    members: BTreeMap<(String, TemplateKey), (i32, String)>,
    clock: u64,
    version: u64,
}

/// A member that can run what the stories are about.
fn member(index: u8) -> Cluster {
    let mut cluster = Cluster::new(&kinds::CLUSTER, "", &format!("m{index}"));
    let enabled = json!([
        {"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]},
        {"groupVersion": "v1", "resources": [{"name": "configmaps", "kind": "ConfigMap"}]},
    ]);
    cluster.status.api_enablements = serde_json::from_value(enabled).expect("enablements");
    cluster
}

/// Runs a story in every mode.
pub fn tell(steps: &str) {
    for way in [Way::Plain, Way::Restarts, Way::Touched, Way::OneSecond, Way::Crashes] {
        let mut story = Story::new(way);
        for line in steps.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            story.step(line);
        }
    }
}

impl Story {
    pub fn new(way: Way) -> Story {
        Story {
            snapshot: Snapshot { clusters: Arc::new((0..6).map(member).collect()), ..Snapshot::default() },
            way,
            policies: BTreeMap::new(),
            templates: BTreeMap::new(),
            members: BTreeMap::new(),
            clock: 0,
            version: 0,
        }
    }

    /// One line of a story.
    pub fn step(&mut self, line: &str) {
        let parts: Vec<&str> = line.split_whitespace().collect();
        self.tick();
        match parts.as_slice() {
            ["gate", "static"] => self.snapshot.gates.static_policy = true,
            ["gate", "preemption", "off"] => self.snapshot.gates.preemption = false,
            ["policy", rest @ ..] => self.put_policy(words::policy("default", rest)),
            ["policy-in", namespace, rest @ ..] => self.put_policy(words::policy(namespace, rest)),
            ["cluster-policy", rest @ ..] => self.put_policy(words::policy("", rest)),
            ["rollout", rest @ ..] => self.put_rollout(words::rollout(rest)),
            ["delete", "rollout", name] => {
                self.snapshot
                    .rollouts
                    .remove(&PolicyKey { namespace: "default".into(), name: (*name).into() });
                self.look(&self.every());
            }
            ["delete", name] if words::template_key(name).is_some() => self.delete_template(name),
            ["delete", name] => self.delete_policy(name),
            ["deployment" | "configmap", ..] => self.put_template(words::template(&parts)),
            ["edit", name, rest @ ..] => self.edit(name, rest),
            ["bookkeeping", name] => self.bookkeeping(name),
            ["reconcile", name] => self.mark(name, api::records::RECONCILE, &self.version.to_string()),
            ["forget", name] => self.forget(name),
            ["restart"] => self.look(&self.every()),
            ["expect", name, rest @ ..] => self.expect(line, name, rest),
            ["expect-binding", name, "of", policy] => self.expect_binding(line, name, policy),
            _ => panic!("no such step: {line}"),
        }
    }

    fn every(&self) -> BTreeSet<Arc<TemplateKey>> {
        self.snapshot.templates.iter().map(|template| template.key.clone()).collect()
    }

    /// Controllers look at what changed; then nothing may be left to do.
    fn look(&mut self, touched: &BTreeSet<Arc<TemplateKey>>) {
        let keys = if self.way == Way::Touched { touched.clone() } else { self.every() };
        if self.way == Way::Crashes {
            keys.iter().for_each(|key| self.write_claim(key));
        }
        self.snapshot.settle(&keys, Interpreters::BUILT_IN);
        if self.way == Way::Restarts {
            self.snapshot = self.snapshot.clone();
        }
        let left = self.snapshot.settle_all(Interpreters::BUILT_IN);
        assert_eq!(left, BTreeSet::new(), "looking twice changes nothing ({:?})", self.way);
        self.sync_members();
    }

    /// The first of the two writes for a template.
    fn write_claim(&mut self, key: &TemplateKey) {
        let decided = self.snapshot.look(key, Interpreters::BUILT_IN);
        let Some(marks) = decided.and_then(|decided| decided.template) else { return };
        let template = self.snapshot.templates.get(key).expect("it was looked at");
        let mut object = template.object();
        object["metadata"]["labels"] = json!(marks.labels);
        object["metadata"]["annotations"] = json!(marks.annotations);
        self.snapshot.templates.insert(Template::read(&object).expect("a template"));
    }

    pub fn put_policy(&mut self, policy: PropagationPolicy) {
        let policy = self.stored(policy);
        let seen = Arc::new(Policy::from(&policy));
        self.policies.insert(seen.key.clone(), policy);
        let before = self.snapshot.policies.insert(Arc::clone(&seen));
        let touched = self.snapshot.templates.touched(before.as_deref(), Some(&seen));
        self.look(&touched);
    }

    /// A policy as the API server stores it now.
    pub fn stored(&self, mut policy: PropagationPolicy) -> PropagationPolicy {
        let previous = self.policies.get(&Policy::from(&policy).key);
        let metadata = &mut policy.metadata;
        metadata.uid = previous.map_or(format!("uid-{}", self.version), |old| old.metadata.uid.clone());
        metadata.generation = previous.map_or(1, |old| old.metadata.generation + 1);
        metadata.resource_version = self.version.to_string();
        let created = previous.and_then(|old| old.metadata.creation_timestamp);
        metadata.creation_timestamp = created.or_else(|| self.stamp().parse().ok());
        let owner = json!({"time": self.stamp(), "fieldsV1": {"f:spec": {"f:resourceSelectors": {}}}});
        metadata.managed_fields = vec![serde_json::from_value(owner).expect("JSON is JSON")];
        policy
    }

    /// Lets a second pass.
    pub fn tick(&mut self) {
        self.clock += u64::from(self.way != Way::OneSecond);
        self.version += 1;
    }

    /// True when there is a policy of that name.
    pub fn has_policy(&self, name: &str) -> bool {
        self.policies.keys().any(|key| key.name == name)
    }

    pub fn delete_policy(&mut self, name: &str) {
        let named = |key: &&PolicyKey| key.name == name;
        let Some(key) = self.policies.keys().find(named).cloned() else { panic!("no policy {name}") };
        self.policies.remove(&key);
        let before = self.snapshot.policies.remove(&key);
        let touched = self.snapshot.templates.touched(before.as_deref(), None);
        self.look(&touched);
    }

    fn put_rollout(&mut self, rollout: RolloutPolicy) {
        let rollout = Rollout::from(&rollout);
        self.snapshot.rollouts.insert(rollout.key.clone(), rollout);
        self.look(&self.every());
    }

    /// Writes the user's part; what controllers wrote on the object stays.
    pub fn put_template(&mut self, mut object: Value) {
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        object["metadata"]["managedFields"] = json!([{"time": self.stamp(), "fieldsV1": {"f:spec": {}}}]);
        let key = Template::read(&object).expect("a template").key;
        if let Some(old) = self.snapshot.templates.get(&key) {
            object["metadata"]["uid"] = old.uid.clone().into();
            object["metadata"]["creationTimestamp"] =
                self.templates[&key]["metadata"]["creationTimestamp"].clone();
            for (key, value) in old.annotations.iter().filter(|(key, _)| api::labels::is_bookkeeping(key)) {
                object["metadata"]["annotations"][key] = value.clone().into();
            }
            for (key, value) in old.labels.iter().filter(|(key, _)| api::labels::is_bookkeeping(key)) {
                object["metadata"]["labels"][key] = value.clone().into();
            }
        } else {
            object["metadata"]["uid"] = format!("uid-{}", self.version).into();
            object["metadata"]["creationTimestamp"] = self.stamp().into();
        }
        self.templates.insert(key.clone(), object.clone());
        self.snapshot.templates.insert(Template::read(&object).expect("a template"));
        self.look(&[key].into());
    }

    /// A template as its user wrote it last, before any controller looked.
    pub fn as_written(&self, key: &TemplateKey) -> Arc<Template> {
        Arc::new(Template::read(&self.templates[key]).expect("a template"))
    }

    fn delete_template(&mut self, name: &str) {
        let key = words::template_key(name).expect("a template");
        self.snapshot.remove_template(&key);
        self.templates.remove(&key);
        self.look(&BTreeSet::new());
    }

    /// A user change: `replicas N`, `version V`, `labels a=b`, or just a refreshed annotation.
    pub fn edit(&mut self, name: &str, rest: &[&str]) {
        let key = words::template_key(name).expect("a template");
        let mut object = self.templates[&key].clone();
        let refreshed = self.version.to_string();
        match rest {
            ["replicas", count] => {
                object["spec"]["replicas"] = count.parse::<i32>().expect("a number").into()
            }
            ["version", version] => object["spec"]["version"] = (*version).into(),
            ["labels", pairs] => object["metadata"]["labels"] = words::pairs(pairs),
            _ => object["metadata"]["annotations"]["refresh-time"] = refreshed.into(),
        }
        self.put_template(object);
    }

    /// Status and Karmada's own keys change, which is no user change.
    fn bookkeeping(&mut self, name: &str) {
        let key = words::template_key(name).expect("a template");
        self.templates.get_mut(&key).expect("there is one")["status"] = json!({"observed": self.version});
        self.mark(name, "x.karmada.io/y", &self.version.to_string());
    }

    fn mark(&mut self, name: &str, annotation: &str, value: &str) {
        let key = words::template_key(name).expect("a template");
        let template = self.snapshot.templates.get(&key).expect("there is one");
        let mut object = template.object();
        object["metadata"]["annotations"][annotation] = value.into();
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        object["status"] = self.templates[&key]["status"].clone();
        self.snapshot.templates.insert(Template::read(&object).expect("a template"));
        self.look(&[Arc::new(key)].into());
    }

    /// Takes our records away, so that everything looks as if Karmada had made it.
    fn forget(&mut self, name: &str) {
        let key = words::template_key(name).expect("a template");
        let ours = |key: &String| key.starts_with(api::records::PREFIX);
        let template = self.snapshot.templates.get(&key).expect("there is one");
        let mut object = template.object();
        if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
            annotations.retain(|key, _| !ours(key));
        }
        self.snapshot.templates.insert(Template::read(&object).expect("a template"));
        if let Some(binding) = Arc::make_mut(&mut self.snapshot.bindings).get_mut(&key.binding()) {
            Arc::make_mut(binding).metadata.annotations.retain(|key, _| !ours(key));
        }
        self.look(&[Arc::new(key)].into());
    }

    fn stamp(&self) -> String {
        format!("2024-01-01T{:02}:{:02}:{:02}Z", self.clock / 3600, self.clock / 60 % 60, self.clock % 60)
    }

    /// What execution does: nothing where it is held, nothing from an unpinned template, deletion always.
    fn sync_members(&mut self) {
        let mut wanted = BTreeMap::new();
        for binding in self.snapshot.bindings.values() {
            for target in targets(binding) {
                wanted.insert((target.name.clone(), TemplateKey::of(binding)), (binding, target));
            }
        }
        self.members.retain(|place, _| wanted.contains_key(place));
        for ((cluster, key), (binding, target)) in wanted {
            let Some(template) = self.snapshot.templates.get(&key) else { continue };
            if !is_held(binding, &cluster) && self.renders(template, binding, &cluster) {
                let object = template.object();
                let version = object.pointer("/spec/version").and_then(Value::as_str).unwrap_or("v1");
                self.members.insert((cluster, key), (target.replicas, version.to_owned()));
            }
        }
    }

    /// Whether the cluster's Work is made anew from this template (R2).
    fn renders(&self, template: &Template, binding: &Binding, cluster: &str) -> bool {
        let clusters = &self.snapshot.clusters;
        let sources =
            Sources { template: Some(template), overrides: &[], clusters, existing: &[], needed_in: &[] };
        works(binding, sources).works.contains_key(cluster)
    }

    /// Where a template runs, as `m1:2@v1`.
    pub fn runs(&self, key: &TemplateKey) -> Vec<String> {
        let here = self.members.iter().filter(|((_, found), _)| found == key);
        here.map(|((cluster, _), (replicas, version))| format!("{cluster}:{replicas}@{version}")).collect()
    }

    /// Who claims a template.
    pub fn claimed_by(&self, key: &TemplateKey) -> String {
        let template = self.snapshot.templates.get(key).expect("there is one");
        claim_on(&template.labels, &template.annotations).map_or("nobody".to_owned(), |mark| mark.policy.name)
    }

    fn expect(&self, line: &str, name: &str, rest: &[&str]) {
        let key = words::template_key(name).expect("a template");
        let [by @ .., "on", places] = rest else { panic!("no such expectation: {line}") };
        if let ["by", policy] = by {
            assert_eq!(self.claimed_by(&key), *policy, "{line} ({:?})", self.way);
        }
        let runs = self.runs(&key);
        let wanted: Vec<&str> = places.split(',').filter(|place| *place != "nothing").collect();
        let shown = |run: &String, place: &str| match (place.contains(':'), place.contains('@')) {
            (true, true) => run == place,
            (true, false) => run.split('@').next() == Some(place),
            (false, true) => {
                run.split(':').next() == place.split('@').next()
                    && run.split('@').nth(1) == place.split('@').nth(1)
            }
            (false, false) => run.split(':').next() == Some(place),
        };
        let same =
            runs.len() == wanted.len() && runs.iter().zip(&wanted).all(|(run, place)| shown(run, place));
        assert!(same, "{line}: runs {runs:?} ({:?})", self.way);
    }

    fn expect_binding(&self, line: &str, name: &str, policy: &str) {
        let key = words::template_key(name).expect("a template");
        let binding = self.snapshot.bindings.get(&key.binding());
        let claimed =
            binding.and_then(|binding| claim_on(&binding.metadata.labels, &binding.metadata.annotations));
        assert_eq!(
            claimed.map_or("nobody".to_owned(), |mark| mark.policy.name),
            policy,
            "{line} ({:?})",
            self.way
        );
    }
}

fn targets(binding: &Binding) -> Vec<TargetCluster> {
    let required = binding.spec.required_by.iter().flat_map(|needing| needing.clusters.iter());
    let required = required.map(|target| TargetCluster { name: target.name.clone(), replicas: 0 });
    binding.spec.clusters.iter().cloned().chain(required).collect()
}
