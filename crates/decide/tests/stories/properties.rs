//! Property tests: generated policies, templates, edits and restarts.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::Scope;
use decide::claim::{claim_on, matched};
use decide::plan::{Action, plan};
use decide::snapshot::{Change, Interpreters};
use decide::{Policies, PolicyKey, Snapshot, TemplateKey, Templates};
use proptest::prelude::*;
use proptest::sample::select;

use crate::story::{Story, Way};
use crate::words;

/// One thing that happens.
#[derive(Debug, Clone)]
enum Step {
    Policy(String),
    Delete(String),
    Template(String),
    Edit(String),
    Bookkeeping(String),
    Restart,
}

const TEMPLATES: [&str; 3] = ["nginx", "other", "user1-a/nginx"];

/// Lines for `policy …` and `cluster-policy …`.
fn any_policy(lazy_only: bool) -> impl Strategy<Value = String> {
    let scope = select(vec![
        "policy pp1",
        "policy pp2",
        "cluster-policy cpp1",
        "cluster-policy cpp2 in default,user1-*",
    ]);
    let selects = select(vec!["all", "nginx", "app=web", "other"]);
    let on = select(vec!["m1", "m2", "m1,m2"]);
    let lazy = if lazy_only { Just(" lazy").boxed() } else { select(vec!["", " lazy"]).boxed() };
    let rest = select(vec!["", " always", " always priority 1", " priority 2", " priority -1 always"]);
    let exclude = select(vec!["", "", " excludes default", " excludes default,user1-*"]);
    (scope, selects, on, lazy, rest, exclude).prop_map(|(scope, selects, on, lazy, rest, exclude)| {
        format!("{scope} selects {selects} on {on}{lazy}{rest}{exclude}")
    })
}

fn any_template() -> impl Strategy<Value = String> {
    (select(TEMPLATES.to_vec()), select(vec!["", " labels app=web"]))
        .prop_map(|(name, rest)| format!("deployment {name}{rest}"))
}

fn any_step(lazy_only: bool) -> impl Strategy<Value = Step> {
    let edit = (
        select(TEMPLATES.to_vec()),
        select(vec!["", " replicas 3", " replicas 1", " labels app=web", " labels app=db"]),
    );
    prop_oneof![
        4 => any_policy(lazy_only).prop_map(Step::Policy),
        2 => select(vec!["pp1", "pp2", "cpp1", "cpp2"]).prop_map(|name| Step::Delete(name.to_owned())),
        3 => any_template().prop_map(Step::Template),
        3 => edit.prop_map(|(name, rest)| Step::Edit(format!("{name}{rest}"))),
        1 => select(TEMPLATES.to_vec()).prop_map(|name| Step::Bookkeeping(name.to_owned())),
        1 => Just(Step::Restart),
    ]
}

fn any_way() -> impl Strategy<Value = Way> {
    select(vec![Way::Plain, Way::Restarts, Way::Touched, Way::OneSecond])
}

fn exists(story: &Story, line: &str) -> bool {
    let name = line.split_whitespace().next().expect("a name");
    let key = words::template_key(name).expect("a template");
    story.snapshot.templates.get(&key).is_some()
}

fn make(story: &mut Story, step: &Step) {
    match step {
        Step::Policy(line) => story.step(line),
        Step::Delete(name) if story.has_policy(name) => story.step(&format!("delete {name}")),
        Step::Template(line) if !exists(story, &line["deployment ".len()..]) => story.step(line),
        Step::Edit(line) if exists(story, line) => story.step(&format!("edit {line}")),
        Step::Bookkeeping(name) if exists(story, name) => story.step(&format!("bookkeeping {name}")),
        Step::Restart => story.step("restart"),
        _ => {}
    }
}

/// Everything that runs anywhere, and who claims what.
fn running(story: &Story) -> BTreeMap<Arc<TemplateKey>, Vec<String>> {
    story
        .snapshot
        .templates
        .iter()
        .map(|template| (template.key.clone(), story.runs(&template.key)))
        .collect()
}

fn owners(story: &Story) -> BTreeMap<Arc<TemplateKey>, Option<PolicyKey>> {
    let owner = |key: &TemplateKey| {
        let template = story.snapshot.templates.get(key).expect("listed");
        claim_on(&template.labels, &template.annotations).map(|mark| mark.policy)
    };
    story.snapshot.templates.iter().map(|template| (template.key.clone(), owner(&template.key))).collect()
}

fn targets(snapshot: &Snapshot, key: &TemplateKey) -> BTreeMap<String, i32> {
    let binding = snapshot.bindings.get(&key.binding());
    binding
        .iter()
        .flat_map(|binding| &binding.spec.clusters)
        .map(|target| (target.name.clone(), target.replicas))
        .collect()
}

/// A step that no user of a template made.
fn is_policys(step: &Step) -> bool {
    matches!(step, Step::Policy(_) | Step::Delete(_) | Step::Bookkeeping(_) | Step::Restart)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn l1_under_lazy_policies_a_policy_edit_alone_changes_nothing_that_runs(
        steps in prop::collection::vec(any_step(true), 1..24),
        way in any_way(),
    ) {
        let mut story = Story::new(way);
        for step in &steps {
            let before = running(&story);
            make(&mut story, step);
            if is_policys(step) {
                prop_assert_eq!(running(&story), before, "{:?}", step);
            }
        }
    }

    #[test]
    fn s2_under_static_a_policy_edit_alone_changes_nothing_that_runs(
        steps in prop::collection::vec(any_step(false), 1..24),
        way in any_way(),
    ) {
        let mut story = Story::new(way);
        story.step("gate static");
        for step in &steps {
            let (before, snapshot) = (running(&story), story.snapshot.clone());
            make(&mut story, step);
            if !is_policys(step) {
                continue;
            }
            for (key, runs) in running(&story) {
                // S1 and S3: what has no binding, or waits, is propagated by the first policy that matches.
                let bound = snapshot.bindings.contains_key(&key.binding());
                let waits = snapshot.templates.get(&key).is_some_and(|template| template.is_waiting());
                if bound && !waits {
                    prop_assert_eq!(Some(&runs), before.get(&key), "{:?}", step);
                }
            }
        }
    }

    #[test]
    fn r1_restarts_and_bookkeeping_change_nothing(
        steps in prop::collection::vec(any_step(false), 1..20),
        ways in (any_way(), any_way()),
        restart_at in 0..20_usize,
        is_static in any::<bool>(),
    ) {
        let mut stories = [Story::new(Way::Plain), Story::new(ways.0)];
        for story in &mut stories {
            story.step(if is_static { "gate static" } else { "restart" });
        }
        for (index, step) in steps.iter().enumerate() {
            for story in &mut stories {
                make(story, step);
            }
            if index == restart_at {
                stories[1].step("restart");
                stories[0].tick();
            }
            prop_assert_eq!(running(&stories[0]), running(&stories[1]), "{:?}", step);
            prop_assert_eq!(owners(&stories[0]), owners(&stories[1]), "{:?}", step);
        }
    }

    #[test]
    fn b2_p2_claims_are_lawful(steps in prop::collection::vec(any_step(false), 1..24), way in any_way(), is_static in any::<bool>()) {
        let mut story = Story::new(way);
        story.step(if is_static { "gate static" } else { "restart" });
        for step in &steps {
            let before = owners(&story);
            make(&mut story, step);
            for (key, owner) in owners(&story) {
                let template = story.snapshot.templates.get(&key).expect("listed");
                // An owner matches, so an excluded template is never claimed.
                if let Some(owner) = &owner {
                    let policy = story.snapshot.policies.get(owner);
                    prop_assert!(policy.is_some_and(|policy| matched(policy, template).is_some()), "{:?}", step);
                }
                // A ClusterPropagationPolicy never takes from a PropagationPolicy that still matches.
                let Some(Some(had)) = before.get(&key) else { continue };
                let keeps = story.snapshot.policies.get(had).is_some_and(|policy| matched(policy, template).is_some());
                if had.scope() == Scope::Namespaced && keeps {
                    let scope = owner.as_ref().map(PolicyKey::scope);
                    prop_assert_eq!(scope, Some(Scope::Namespaced), "{:?}", step);
                }
            }
        }
    }

    /// Changes that no reconcile has seen yet: the order in which they arrived does not matter.
    #[test]
    fn the_order_in_which_facts_are_seen_never_matters(
        steps in prop::collection::vec(any_step(false), 1..16),
        seed in any::<u64>(),
        is_static in any::<bool>(),
    ) {
        let mut story = Story::new(Way::Plain);
        story.step(if is_static { "gate static" } else { "restart" });
        let (last, first) = steps.split_last().expect("at least one");
        first.iter().for_each(|step| make(&mut story, step));
        let settled = story.snapshot.clone();
        make(&mut story, last);
        // The same facts, put into fresh indexes in another order and looked at one by one in another order.
        let mut shuffled = Snapshot { policies: Policies::default(), templates: Templates::default(), ..settled.clone() };
        let order = |index: usize| (index as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut policies: Vec<_> = story.snapshot.policies.iter().cloned().enumerate().collect();
        policies.sort_by_key(|(index, _)| order(*index));
        policies.into_iter().for_each(|(_, policy)| drop(shuffled.policies.insert(policy)));
        // Templates as their users left them, with the marks they had before the last step.
        let unlooked = story.snapshot.templates.iter().map(|now| match settled.templates.get(&now.key) {
            Some(old) if old.digest == now.digest => Arc::clone(old),
            _ => story.as_written(&now.key),
        });
        let mut templates: Vec<_> = unlooked.enumerate().collect();
        templates.sort_by_key(|(index, _)| order(*index + 99));
        templates.iter().for_each(|(_, template)| drop(shuffled.templates.insert(Arc::clone(template))));
        for (_, template) in &templates {
            shuffled.settle(&[template.key.clone()].into(), Interpreters::BUILT_IN);
        }
        for template in story.snapshot.templates.iter() {
            let other = shuffled.templates.get(&template.key).expect("the same templates");
            prop_assert_eq!(&template.labels, &other.labels);
            prop_assert_eq!(targets(&story.snapshot, &template.key), targets(&shuffled, &template.key));
        }
    }

    #[test]
    fn what_plan_says_is_what_happens(
        steps in prop::collection::vec(any_step(false), 1..16),
        edit in any_policy(false),
        is_static in any::<bool>(),
    ) {
        let mut story = Story::new(Way::Plain);
        story.step(if is_static { "gate static" } else { "restart" });
        steps.iter().for_each(|step| make(&mut story, step));
        story.tick();
        let parts: Vec<&str> = edit.split_whitespace().collect();
        let namespace = if parts[0] == "policy" { "default" } else { "" };
        let policy = story.stored(words::policy(namespace, &parts[1..]));
        let object = serde_json::to_value(&policy).expect("a policy is JSON");
        let planned = plan(&story.snapshot, &[Change::Put(Arc::new(object))], Interpreters::BUILT_IN).expect("it can be read");
        let (before, owned) = (story.snapshot.clone(), owners(&story));
        story.put_policy(policy);
        for template in before.templates.iter() {
            let said = planned.templates.values().find(|plan| plan.template == template.key);
            let mut expected = targets(&before, &template.key);
            for (cluster, change) in said.iter().flat_map(|plan| plan.clusters.iter()) {
                match change.action {
                    Action::Create { replicas } => drop(expected.insert(cluster.clone(), replicas)),
                    Action::Delete { .. } => drop(expected.remove(cluster)),
                    Action::Scale { to, .. } => drop(expected.insert(cluster.clone(), to)),
                    Action::Update | Action::Suspend | Action::Resume => {}
                }
            }
            prop_assert_eq!(expected, targets(&story.snapshot, &template.key), "{}", planned);
            let moved = said.is_some_and(|plan| plan.claim.is_some());
            prop_assert_eq!(moved, owners(&story)[&template.key] != owned[&template.key], "{}", planned);
        }
    }

    /// The indexes answer like a walk over everything.
    #[test]
    fn b5_the_indexes_find_what_a_walk_finds(
        policies in prop::collection::vec(any_policy(false), 1..8),
        templates in prop::collection::vec(any_template(), 1..8),
        removed in prop::collection::vec(any::<bool>(), 8),
    ) {
        let mut story = Story::new(Way::Plain);
        policies.iter().chain(&templates).for_each(|line| story.step(line));
        for (name, _) in ["pp1", "pp2", "cpp1", "cpp2"].iter().zip(&removed).filter(|(_, removed)| **removed) {
            make(&mut story, &Step::Delete((*name).to_owned()));
        }
        for policy in story.snapshot.policies.iter() {
            let walked: Vec<_> =
                story.snapshot.templates.iter().filter(|template| matched(policy, template).is_some()).map(|template| template.key.clone()).collect();
            prop_assert_eq!(story.snapshot.templates.selected(policy).into_iter().collect::<Vec<_>>(), walked);
        }
    }
}
