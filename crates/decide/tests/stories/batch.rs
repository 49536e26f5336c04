//! Proposal 004: many templates at once (B1 to B4). What its webhook refuses is tested in `admission`.

use crate::story::tell;

#[test]
fn b1_scheme_1_a_prefix_takes_from_the_default_policy_and_b4_new_templates_follow() {
    tell(
        "cluster-policy cpp-default selects all on m1,m2 priority 0
         deployment user1-a/nginx
         deployment user1-b/nginx
         deployment user2-a/nginx
         expect user1-a/nginx by cpp-default on m1,m2
         cluster-policy cpp-custom selects all in user1-* on m1 priority 3 always
         expect user1-a/nginx by cpp-custom on m1
         expect user1-b/nginx by cpp-custom on m1
         expect user2-a/nginx by cpp-default on m1,m2
         deployment user1-c/nginx
         expect user1-c/nginx by cpp-custom on m1",
    );
}

#[test]
fn b1_scheme_1_a_list_takes_only_what_it_lists() {
    tell(
        "cluster-policy cpp-default selects all on m2
         deployment namespace1/a
         deployment namespace2/a
         deployment namespace22/a
         cluster-policy cpp-custom selects all in namespace1,namespace2 on m1 priority 3 always
         expect namespace1/a by cpp-custom on m1
         expect namespace2/a by cpp-custom on m1
         expect namespace22/a by cpp-default on m2",
    );
}

#[test]
fn b1_scheme_1_a_propagation_policy_without_name_takes_its_whole_namespace() {
    tell(
        "cluster-policy cpp-default selects all on m2
         deployment user1-a/nginx
         deployment user1-a/other
         deployment user2-a/nginx
         policy-in user1-a pp selects all on m1 always
         expect user1-a/nginx by pp on m1
         expect user1-a/other by pp on m1
         expect user2-a/nginx by cpp-default on m2",
    );
}

#[test]
fn b1_nested_teams_win_by_priority() {
    tell(
        "cluster-policy cpp-default selects all on m0
         deployment group1-1-x/a
         deployment group1-2-x/a
         cluster-policy cpp-group selects all in group1-* on m1 priority 1 always
         cluster-policy cpp-team selects all in group1-1-* on m2 priority 2 always
         expect group1-1-x/a by cpp-team on m2
         expect group1-2-x/a by cpp-group on m1",
    );
}

#[test]
fn b2_b3_scheme_2_what_becomes_excluded_goes_to_its_own_policy_at_once() {
    tell(
        "cluster-policy cpp-default selects all on m2
         deployment user1-a/nginx
         deployment user2-a/nginx
         cluster-policy cpp-user selects all in user1-* on m1
         expect user1-a/nginx by cpp-default on m2
         cluster-policy cpp-default selects all on m2 excludes user1-*
         expect user1-a/nginx by cpp-user on m1
         expect user2-a/nginx by cpp-default on m2
         deployment user1-b/nginx
         expect user1-b/nginx by cpp-user on m1",
    );
}

#[test]
fn b3_excluded_with_no_other_policy_is_unclaimed_and_frozen() {
    tell(
        "cluster-policy cpp-default selects all on m2
         deployment user1-a/nginx
         cluster-policy cpp-default selects all on m2 excludes user1-*
         expect user1-a/nginx by nobody on m2:1
         edit user1-a/nginx replicas 5
         expect user1-a/nginx by nobody on m2:1
         cluster-policy cpp-user selects all in user1-a on m1
         expect user1-a/nginx by cpp-user on m1:5",
    );
}

#[test]
fn b3_excluded_with_a_lazy_successor_waits_for_the_template() {
    tell(
        "cluster-policy cpp-default selects all on m2
         deployment user1-a/nginx
         cluster-policy cpp-user selects all in user1-* on m1 lazy
         cluster-policy cpp-default selects all on m2 excludes user1-*
         expect user1-a/nginx by cpp-user on m2
         edit user1-a/nginx
         expect user1-a/nginx by cpp-user on m1",
    );
}

#[test]
fn b2_an_exclusion_beats_the_name_in_the_same_policy() {
    tell(
        "policy pp selects nginx on m1 leaves-out nginx
         deployment nginx
         expect nginx by nobody on nothing",
    );
}

#[test]
fn b4_a_pattern_is_no_level_of_its_own() {
    tell(
        "cluster-policy cpp-b selects all in user1-* on m1
         cluster-policy cpp-a selects all on m2
         deployment user1-a/nginx
         expect user1-a/nginx by cpp-a on m2
         cluster-policy cpp-c selects nginx on m3
         deployment user1-b/nginx
         expect user1-b/nginx by cpp-c on m3",
    );
}
