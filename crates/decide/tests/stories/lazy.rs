//! Proposal 001: policies that wait for the template (L1 to L6, R1, R3).

use crate::story::tell;

#[test]
fn r3_simple_case_1_policy_first() {
    tell(
        "policy pp selects nginx on m1 lazy
         deployment nginx
         expect nginx by pp on m1
         delete pp
         expect nginx by nobody on m1",
    );
}

#[test]
fn r3_simple_case_2_template_first() {
    tell(
        "deployment nginx
         policy pp selects nginx on m1 lazy
         expect nginx by pp on nothing
         restart
         bookkeeping nginx
         expect nginx by pp on nothing
         edit nginx
         expect nginx by pp on m1",
    );
}

#[test]
fn l3_simple_case_3_lazy_to_immediate() {
    tell(
        "policy pp selects nginx on m1 lazy
         deployment nginx
         expect nginx by pp on m1
         policy pp selects nginx on m2
         expect nginx by pp on m2",
    );
}

#[test]
fn l1_simple_case_4_immediate_to_lazy() {
    tell(
        "policy pp selects nginx on m1
         deployment nginx
         expect nginx by pp on m1
         policy pp selects nginx on m2 lazy
         expect nginx by pp on m1
         restart
         expect nginx by pp on m1
         edit nginx
         expect nginx by pp on m2",
    );
}

#[test]
fn l2_combined_case_1_policy_deleted() {
    tell(
        "policy pp1 selects nginx on m1 lazy
         deployment nginx
         policy pp2 selects nginx on m2 lazy
         expect nginx by pp1 on m1
         delete pp1
         expect nginx by pp2 on m1
         restart
         expect nginx by pp2 on m1
         edit nginx
         expect nginx by pp2 on m2",
    );
}

#[test]
fn l2_combined_case_2_policy_no_longer_matches() {
    tell(
        "cluster-policy cpp1 selects nginx on m1 lazy
         deployment nginx
         cluster-policy cpp2 selects nginx on m2 lazy
         cluster-policy cpp1 selects other on m1 lazy
         expect nginx by cpp2 on m1
         edit nginx
         expect nginx by cpp2 on m2",
    );
}

#[test]
fn l2_combined_case_3_preemption_by_an_immediate_policy() {
    tell(
        "cluster-policy cpp1 selects nginx on m1 lazy
         deployment nginx
         expect nginx by cpp1 on m1
         policy pp2 selects nginx on m2 priority 2 always
         expect nginx by pp2 on m2",
    );
}

#[test]
fn l2_combined_case_4_preemption_by_a_lazy_policy() {
    tell(
        "policy pp1 selects nginx on m1 lazy
         deployment nginx
         policy pp2 selects nginx on m2 lazy priority 2 always
         expect nginx by pp2 on m1
         expect-binding nginx of pp2
         restart
         edit nginx
         expect nginx by pp2 on m2",
    );
}

#[test]
fn l6_combined_case_5_dependencies_wait_too() {
    tell(
        "policy pp selects nginx on m1 lazy deps
         configmap conf
         expect conf by nobody on nothing
         deployment nginx needs conf
         expect nginx by pp on m1
         expect conf by nobody on m1
         policy pp selects nginx on m2 lazy deps
         expect nginx by pp on m1
         expect conf by nobody on m1
         edit nginx
         expect nginx by pp on m2
         expect conf by nobody on m2",
    );
}

#[test]
fn l6_combined_case_6_dependencies_later() {
    tell(
        "deployment nginx needs conf
         configmap conf
         policy pp selects nginx,conf on m1 lazy
         expect nginx by pp on nothing
         expect conf by pp on nothing
         edit nginx
         expect nginx by pp on m1
         expect conf by pp on nothing
         policy pp selects nginx,conf on m2 lazy deps
         expect nginx by pp on m1
         expect conf by pp on nothing
         edit nginx
         expect nginx by pp on m2
         expect conf by pp on m2",
    );
}

#[test]
fn l3_unlazying_finds_templates_without_a_binding() {
    tell(
        "deployment nginx
         policy pp selects nginx on m1 lazy
         expect nginx by pp on nothing
         policy pp selects nginx on m1
         expect nginx by pp on m1",
    );
}

#[test]
fn l3_unlazying_finds_bindings_that_still_follow_a_predecessor() {
    tell(
        "policy pp1 selects nginx on m1 lazy
         deployment nginx
         policy pp2 selects nginx on m2 lazy priority 2 always
         expect nginx by pp2 on m1
         policy pp2 selects nginx on m2 priority 2 always
         expect nginx by pp2 on m2",
    );
}

#[test]
fn l4_a_template_that_was_never_propagated_is_free_again() {
    tell(
        "deployment nginx
         policy pp1 selects nginx on m1 lazy
         delete pp1
         expect nginx by nobody on nothing
         policy pp2 selects nginx on m2
         expect nginx by pp2 on m2",
    );
}

#[test]
fn l5_the_brake_acts_through_a_lazy_policy_and_moves_nothing_else() {
    tell(
        "policy pp selects nginx on m1 lazy
         deployment nginx
         policy pp selects nginx on m2 lazy suspend all
         expect nginx by pp on m1@v1
         edit nginx version v2
         expect nginx by pp on nothing
         policy pp selects nginx on m2 lazy
         expect nginx by pp on m2@v2",
    );
}

#[test]
fn l2_a_successor_that_is_not_lazy_acts_at_once() {
    tell(
        "policy pp1 selects nginx on m1 lazy
         deployment nginx
         policy pp2 selects nginx on m2
         delete pp1
         expect nginx by pp2 on m2",
    );
}

#[test]
fn l1_only_the_users_change_activates() {
    tell(
        "policy pp selects nginx on m1 lazy
         deployment nginx
         policy pp selects nginx on m2 lazy
         bookkeeping nginx
         expect nginx by pp on m1
         edit nginx replicas 3
         expect nginx by pp on m2:3",
    );
}

/// A change that is taken back is a change too: the second one is measured from the binding.
#[test]
fn l1_going_back_to_what_the_template_was_when_claimed_is_a_user_change() {
    tell(
        "deployment nginx replicas 1
         policy pp selects nginx on m1 lazy
         edit nginx replicas 2
         expect nginx by pp on m1:2
         policy pp selects nginx on m2 lazy
         edit nginx replicas 1
         expect nginx by pp on m2:1",
    );
}

#[test]
fn r3_a_policy_that_comes_to_match_by_an_edit_of_its_own_waits() {
    tell(
        "policy pp selects other on m1 lazy
         deployment nginx
         policy pp selects nginx on m1 lazy
         expect nginx by pp on nothing
         edit nginx
         expect nginx by pp on m1",
    );
}

#[test]
fn r3_a_template_that_comes_to_match_by_an_edit_of_its_own_acts() {
    tell(
        "deployment nginx
         policy pp selects app=nginx on m1 lazy
         expect nginx by nobody on nothing
         edit nginx labels app=nginx
         expect nginx by pp on m1",
    );
}

#[test]
fn r3_what_changed_before_the_policy_came_is_no_trigger() {
    tell(
        "policy pp1 selects nginx on m1
         deployment nginx
         delete pp1
         edit nginx replicas 4
         expect nginx by nobody on m1:1
         policy pp2 selects nginx on m2 lazy
         expect nginx by pp2 on m1:1
         edit nginx replicas 5
         expect nginx by pp2 on m2:5",
    );
}

#[test]
fn r2_a_frozen_binding_leaks_nothing_and_still_dies_with_its_template() {
    tell(
        "policy pp selects nginx on m1
         deployment nginx
         delete pp
         edit nginx version v2
         restart
         expect nginx by nobody on m1@v1
         delete nginx
         restart",
    );
}

#[test]
fn reconcile_puts_a_lazy_policy_into_effect_once() {
    tell(
        "deployment nginx
         policy pp selects nginx on m1 lazy
         reconcile nginx
         expect nginx by pp on m1
         policy pp selects nginx on m2 lazy
         restart
         expect nginx by pp on m1
         reconcile nginx
         expect nginx by pp on m2",
    );
}

#[test]
fn a_policy_waits_for_the_overrides_it_names() {
    tell(
        "policy pp selects nginx on m1 overrides op1
         deployment nginx
         expect nginx by pp on nothing",
    );
}

#[test]
fn l2_a_successor_of_a_claim_that_waits_goes_on_waiting() {
    tell(
        "deployment nginx
         cluster-policy cpp selects nginx on m1 lazy
         policy pp selects nginx on m2 lazy
         edit nginx replicas 1
         expect nginx by cpp on nothing
         delete cpp
         expect nginx by pp on nothing
         edit nginx
         expect nginx by pp on m2",
    );
}

#[test]
fn c7_what_karmada_made_is_taken_over_without_a_move() {
    tell(
        "policy pp selects nginx on m1 lazy
         deployment nginx
         policy pp selects nginx on m2 lazy
         forget nginx
         expect nginx by pp on m1
         restart
         expect nginx by pp on m1
         edit nginx
         expect nginx by pp on m2",
    );
    tell(
        "deployment nginx
         policy pp selects nginx on m1 lazy
         forget nginx
         expect nginx by pp on nothing
         edit nginx
         expect nginx by pp on m1",
    );
    tell(
        "policy pp selects nginx on m1
         deployment nginx
         delete pp
         forget nginx
         edit nginx version v2
         expect nginx by nobody on m1@v1",
    );
}
