//! What a change releases: templates and clusters that are suspended now and would not be then. Pure.

use std::fmt::Write as _;

use decide::binding::is_held;
use decide::snapshot::{Change, Interpreters};
use decide::works::targets;
use decide::{Snapshot, TemplateKey};

use crate::terminal_text::{some_of, wrapped};

/// How many lines there are.
const LINES_MAX: usize = 20;
/// How many names are in one.
const NAMES_MAX: usize = 6;

/// A template and the clusters in which it would be dispatched again.
#[derive(Debug, PartialEq, Eq)]
pub struct Released {
    /// The template.
    pub template: TemplateKey,
    /// The clusters.
    pub clusters: Vec<String>,
}

/// What the changes would release.
pub fn released(
    snapshot: &Snapshot,
    change: &Change,
) -> Result<Vec<Released>, decide::snapshot::ChangeError> {
    let mut then = snapshot.clone();
    let touched = then.apply(change)?;
    then.settle(&touched, Interpreters::BUILT_IN);
    let mut all = Vec::new();
    for (key, after) in then.bindings.iter() {
        let Some(before) = snapshot.bindings.get(key) else { continue };
        let let_go = |name: &String| is_held(before, name) && !is_held(after, name);
        let clusters: Vec<String> =
            targets(&after.spec).into_iter().map(|target| target.name).filter(let_go).collect();
        if !clusters.is_empty() {
            all.push(Released { template: TemplateKey::of(after), clusters });
        }
    }
    all.sort_by_key(|one| one.template.to_string());
    Ok(all)
}

/// The list as text; those that go to the same clusters stand together.
pub fn shown(released: &[Released]) -> String {
    let mut alike: Vec<(&[String], Vec<String>)> = Vec::new();
    for one in released {
        let name = one.template.to_string();
        match alike.iter_mut().find(|(clusters, _)| *clusters == one.clusters) {
            Some((_, names)) => names.push(name),
            None => alike.push((&one.clusters, vec![name])),
        }
    }
    let mut text = String::new();
    for (clusters, names) in alike.iter().take(LINES_MAX) {
        let clusters = some_of(clusters, NAMES_MAX);
        let _ = match names.as_slice() {
            [name] => writeln!(text, "{}", wrapped("  ", &format!("{name}: to {clusters}"))),
            names => {
                let all = wrapped("  ", &format!("{} templates: to {clusters}", names.len()));
                writeln!(text, "{all}\n{}", wrapped("    ", &some_of(names, NAMES_MAX)))
            }
        };
    }
    let more: usize = alike.iter().skip(LINES_MAX).map(|(_, names)| names.len()).sum();
    if more > 0 {
        let _ = writeln!(text, "  and {more} more; `longshore rollout status POLICY --all` shows each");
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::stage::{Stage, all, on};

    /// What is dispatched when the policy `pp` is resumed.
    #[track_caller]
    fn check(stage: &Stage, expected: &Expect) {
        let key = decide::PolicyKey { namespace: "default".to_owned(), name: "pp".to_owned() };
        let policy = stage.snapshot.policies.get(&key).expect("it was written");
        let mut spec = json!(policy.spec);
        spec["suspension"] = json!(null);
        let resumed = json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "metadata": { "name": "pp", "namespace": "default", "uid": policy.uid, "generation": 2 },
            "spec": spec,
        });
        let released = released(&stage.snapshot, &Change::Put(resumed.into())).expect("it makes sense");
        let text = format!("This dispatches:\n{}", shown(&released));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "too wide:\n{text}");
        expected.assert_eq(&text);
    }

    fn held(clusters: &[&str]) -> serde_json::Value {
        json!({ "resourceSelectors": all(), "placement": on(clusters), "suspension": { "dispatching": true } })
    }

    #[test]
    fn what_is_let_go_is_named_with_its_clusters() {
        let mut stage = Stage::new();
        stage.policy("pp", held(&["member1", "member2"]));
        stage.nginx(2);
        check(
            &stage,
            &expect![[r#"
                This dispatches:
                  Deployment default/nginx: to member1, member2
            "#]],
        );
    }

    #[test]
    fn of_hundreds_in_hundreds_some_are_named() {
        let mut stage = Stage::new();
        let names: Vec<String> = (0..200).map(|number| format!("cluster-{number:03}")).collect();
        names.iter().for_each(|name| stage.cluster(name, json!([])));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        stage.policy("pp", held(&names));
        stage.crowd(200);
        check(
            &stage,
            &expect![[r#"
                This dispatches:
                  200 templates: to cluster-000, cluster-001, cluster-002, cluster-003,
                  cluster-004, cluster-005 and 194 more
                    Deployment default/web-0000, Deployment default/web-0001, Deployment
                    default/web-0002, Deployment default/web-0003, Deployment default/web-0004,
                    Deployment default/web-0005 and 194 more
            "#]],
        );
    }
}
