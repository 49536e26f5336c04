//! Which bindings keep a dependency, and which policy decides its rules.

use api::binding::TargetCluster;
use api::kinds;
use serde_json::json;

use super::*;

fn config() -> Template {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "conf", "namespace": "default", "uid": "u-conf", "resourceVersion": "3"},
    });
    Template::read(&object).unwrap()
}

fn needing(name: &str, clusters: &[&str], held: &[&str]) -> Binding {
    let mut binding = Binding::new(&kinds::RESOURCE_BINDING, "default", name);
    binding.metadata.labels.insert(RESOURCE_BINDING_PERMANENT_ID.into(), format!("id-{name}"));
    binding.spec.resource.namespace = "default".to_owned();
    binding.spec.clusters =
        clusters.iter().map(|name| TargetCluster { name: (*name).into(), replicas: 1 }).collect();
    binding.spec.suspension = (!held.is_empty()).then(|| BindingSuspension {
        dispatching_on_clusters: Some(SuspendClusters {
            cluster_names: held.iter().map(|name| (*name).into()).collect(),
        }),
        ..BindingSuspension::default()
    });
    binding
}

fn held_on(needed_by: &[&Binding]) -> Vec<String> {
    let attached = attached(&config(), None, needed_by, std::iter::empty()).unwrap();
    ["m1", "m2", "m3"]
        .into_iter()
        .filter(|name| is_held(&attached.binding, name))
        .map(str::to_owned)
        .collect()
}

#[test]
fn u6_a_dependency_is_held_where_everybody_who_needs_it_is_held() {
    let one = needing("one-deployment", &["m1", "m2"], &["m1", "m2"]);
    let two = needing("two-deployment", &["m2", "m3"], &["m3"]);
    assert_eq!(held_on(&[&one]), ["m1", "m2"]);
    assert_eq!(held_on(&[&one, &two]), ["m1", "m3"]);
    assert_eq!(held_on(&[&needing("x", &["m1"], &[])]), Vec::<String>::new());
}

#[test]
fn l6_an_attached_binding_repeats_the_clusters_of_those_that_need_it() {
    let one = needing("one-deployment", &["m1"], &[]);
    let binding = attached(&config(), None, &[&one], std::iter::empty()).unwrap().binding;
    assert_eq!((binding.metadata.name.as_str(), binding.spec.placement.as_ref()), ("conf-configmap", None));
    assert_eq!(binding.spec.required_by, [snapshot(&one)]);
    let label = names::depended_by_label("default", "one-deployment");
    assert_eq!(binding.metadata.label(&label), "id-one-deployment");
    let again = attached(&config(), Some(&binding), &[&one], std::iter::empty()).unwrap().binding;
    assert_eq!(again, binding, "looking twice changes nothing");
    let free = attached(&config(), Some(&binding), &[], std::iter::empty()).unwrap().binding;
    assert!(free.spec.required_by.is_empty() && free.metadata.labels.is_empty());
    assert_eq!(attached(&config(), None, &[], std::iter::empty()), None);
}

#[test]
fn those_that_need_it_may_disagree() {
    let (mut one, two) = (needing("one", &["m1"], &[]), needing("two", &["m1"], &[]));
    one.spec.conflict_resolution = Some(ConflictResolution::Overwrite);
    let attached = attached(&config(), None, &[&one, &two], std::iter::empty()).unwrap();
    assert_eq!(attached.binding.spec.conflict_resolution, Some(ConflictResolution::Overwrite));
    assert_eq!(attached.conflict.unwrap().to_string(), "ConflictResolution conflicted (Overwrite vs Abort)");
}

#[test]
fn r2_a_frozen_binding_still_needs_what_its_template_needed() {
    let template = config();
    let now = |name: &str| DependentObjectReference {
        name: name.to_owned(),
        namespace: "default".to_owned(),
        ..Default::default()
    };
    let mut binding = needing("one-deployment", &["m1"], &[]);
    let ask = |_: &Template| Some(vec![now("new")]);
    assert_eq!(needs(&binding, Some(&template), ask), [], "it takes nothing along");
    binding.spec.propagate_deps = true;
    assert_eq!(needs(&binding, Some(&template), ask), [now("new")]);
    let noted = serde_json::to_string(&[now("old")]).unwrap();
    binding.metadata.annotations.insert(DEPENDENCIES.to_owned(), noted);
    assert_eq!(needs(&binding, Some(&template), |_| None), [now("old")], "what only a script can tell (C7)");
    Pin { template: "older".to_owned(), ..Pin::default() }.write(&mut binding.metadata);
    assert_eq!(needs(&binding, Some(&template), ask), [now("old")]);
    assert_eq!(needs(&binding, None, ask), [now("old")]);
    binding.metadata.deletion_timestamp = Some(jiff::Timestamp::UNIX_EPOCH.into());
    assert_eq!(needs(&binding, Some(&template), ask), [], "it is going");
}

#[test]
fn m3_nothing_goes_along_from_outside_the_namespace() {
    let of = |namespace: &str| DependentObjectReference {
        name: "db".to_owned(),
        namespace: namespace.to_owned(),
        ..Default::default()
    };
    let mut binding = needing("one-deployment", &["m1"], &[]);
    binding.spec.propagate_deps = true;
    let all = [of("default"), of("team-b"), of("")];
    let written = serde_json::to_string(&all).unwrap();
    binding.metadata.annotations.insert(DEPENDENCIES.to_owned(), written);
    assert_eq!(noted(&binding), [of("default")]);
    assert_eq!(outside(&binding), [of("team-b"), of("")]);
    assert_eq!(needs(&binding, Some(&config()), |_| Some(all.to_vec())), [of("default")]);
    binding.spec.resource.namespace = "team-b".to_owned();
    assert_eq!(noted(&binding), [], "it is ignored as a whole");
}
