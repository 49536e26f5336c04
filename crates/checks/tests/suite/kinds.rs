//! The committed table of kinds has what the API server needs, independent of who generated it last.

use schema::kinds;

const SERVED: &[&str] = &[
    "v1",
    "apps/v1",
    "batch/v1",
    "networking.k8s.io/v1",
    "rbac.authorization.k8s.io/v1",
    "policy/v1",
    "autoscaling/v1",
    "autoscaling/v2",
    "storage.k8s.io/v1",
    "scheduling.k8s.io/v1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "events.k8s.io/v1",
    "apiextensions.k8s.io/v1",
    "admissionregistration.k8s.io/v1",
    "authentication.k8s.io/v1",
    "authorization.k8s.io/v1",
    "certificates.k8s.io/v1",
    "node.k8s.io/v1",
    "apiregistration.k8s.io/v1",
];

#[test]
fn the_table_has_every_served_group_version_and_no_other() {
    let mut found: Vec<String> = kinds::all()
        .iter()
        .map(|kind| match kind.group {
            "" => kind.version.to_owned(),
            group => format!("{group}/{}", kind.version),
        })
        .collect();
    found.sort();
    found.dedup();
    let mut expected = SERVED.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn what_can_be_listed_says_the_kind_of_its_list() {
    for kind in kinds::all() {
        let listed = kind.verbs.contains(&"list");
        assert_eq!(listed, kind.list_kind.is_some(), "{} {:?}", kind.kind, kind.list_kind);
    }
}
