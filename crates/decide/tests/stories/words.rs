//! The words of the step language: what `policy pp1 selects nginx on m1 lazy` means.

use api::suspension::SuspendClusters;
use api::{PropagationPolicy, ResourceSelector, RolloutPolicy, Suspension, kinds};
use decide::TemplateKey;
use serde_json::{Map, Value, json};

/// `nginx` is a Deployment in `default`, `user1-a/nginx` elsewhere, `conf…` a ConfigMap; `pp…`, `cpp…` and
/// `rp…` are policies.
pub fn template_key(name: &str) -> Option<TemplateKey> {
    let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
    if ["pp", "cpp", "rp"].iter().any(|prefix| name.starts_with(prefix)) {
        return None;
    }
    let (api_version, kind) =
        if name.starts_with("conf") { ("v1", "ConfigMap") } else { ("apps/v1", "Deployment") };
    Some(TemplateKey {
        api_version: api_version.into(),
        kind: kind.into(),
        namespace: namespace.into(),
        name: name.into(),
    })
}

/// `NAME selects WHAT[,WHAT] [in PATTERN] on CLUSTERS [lazy] [always] [deps] [priority N] [suspend all|CLUSTERS]
/// [excludes PATTERN] [leaves-out NAME] [overrides NAME]`; WHAT is a name, `all`, or `label=value`.
pub fn policy(namespace: &str, words: &[&str]) -> PropagationPolicy {
    let kind =
        if namespace.is_empty() { kinds::CLUSTER_PROPAGATION_POLICY } else { kinds::PROPAGATION_POLICY };
    let [name, rest @ ..] = words else { panic!("a policy needs a name") };
    let mut policy = PropagationPolicy::new(&kind, namespace, name);
    let mut rest = rest.iter().copied();
    let mut pattern = namespace;
    let mut selects = "";
    while let Some(word) = rest.next() {
        let mut next = || rest.next().unwrap_or_else(|| panic!("{word} of {name} needs a word after it"));
        match word {
            "selects" => selects = next(),
            "in" => pattern = next(),
            "on" => {
                let names = next().split(',').map(str::to_owned).collect();
                policy.spec.placement.cluster_affinity =
                    Some(api::ClusterAffinity { cluster_names: names, ..api::ClusterAffinity::default() });
            }
            "lazy" => policy.spec.activation_preference = Some(api::propagation::ActivationPreference::Lazy),
            "always" => policy.spec.preemption = Some(api::propagation::Preemption::Always),
            "deps" => policy.spec.propagate_deps = true,
            "priority" => policy.spec.priority = Some(next().parse().expect("a number")),
            "suspend" => policy.spec.suspension = Some(suspension(next())),
            "overrides" => policy.spec.dependent_overrides.push(next().into()),
            "excludes" => policy.spec.exclude_resource_selectors.push(excluded(next(), "")),
            "leaves-out" => policy.spec.exclude_resource_selectors.push(excluded(namespace, next())),
            _ => panic!("no such word: {word}"),
        }
    }
    policy.spec.resource_selectors = selects.split(',').map(|what| selector(what, pattern)).collect();
    policy
}

fn selector(what: &str, namespace: &str) -> ResourceSelector {
    let key = template_key(what).expect("what a policy selects");
    let mut selector = ResourceSelector {
        api_version: key.api_version,
        kind: key.kind,
        namespace: namespace.into(),
        ..ResourceSelector::default()
    };
    match what.split_once('=') {
        Some((label, value)) => {
            let labels = json!({"matchLabels": {label: value}});
            selector.label_selector = Some(serde_json::from_value(labels).expect("a selector"));
        }
        None if what != "all" => selector.name = key.name,
        None => {}
    }
    selector
}

fn excluded(namespace: &str, name: &str) -> api::selector::ExcludeResourceSelector {
    api::selector::ExcludeResourceSelector {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        namespace: namespace.into(),
        name: name.into(),
        label_selector: None,
    }
}

/// The proposal's own names on purpose (U1).
fn suspension(words: &str) -> Suspension {
    match words {
        "all" => Suspension { suspend_dispatching: Some(true), ..Suspension::default() },
        names => Suspension {
            suspend_dispatching_on_clusters: Some(SuspendClusters {
                cluster_names: names.split(',').map(str::to_owned).collect(),
            }),
            ..Suspension::default()
        },
    }
}

/// `NAME selects WHAT suspend …`
pub fn rollout(words: &[&str]) -> RolloutPolicy {
    let [name, "selects", what, "suspend", suspended] = words else {
        panic!("NAME selects WHAT suspend WHERE")
    };
    let mut rollout = RolloutPolicy::new(&kinds::ROLLOUT_POLICY, "default", name);
    rollout.spec.resource_selectors = vec![selector(what, "default")];
    rollout.spec.suspension = Some(suspension(suspended));
    rollout
}

/// `deployment NAME [replicas N] [labels a=b] [needs NAME]`
pub fn template(words: &[&str]) -> Value {
    let [_, name, rest @ ..] = words else { panic!("a template needs a name") };
    let key = template_key(name).expect("a template");
    let mut object = json!({
        "apiVersion": key.api_version, "kind": key.kind,
        "metadata": {"name": key.name, "namespace": key.namespace, "labels": {}, "annotations": {}},
        "spec": {"replicas": 1},
    });
    for pair in rest.chunks(2) {
        match pair {
            ["replicas", count] => {
                object["spec"]["replicas"] = count.parse::<i32>().expect("a number").into()
            }
            ["labels", labels] => object["metadata"]["labels"] = pairs(labels),
            ["needs", name] => {
                let volumes = json!([{"name": "conf", "configMap": {"name": name}}]);
                object["spec"]["template"]["spec"]["volumes"] = volumes;
            }
            _ => panic!("no such words: {pair:?}"),
        }
    }
    object
}

pub fn pairs(text: &str) -> Value {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    Value::Object(pairs.map(|(key, value)| (key.to_owned(), value.into())).collect::<Map<_, _>>())
}
