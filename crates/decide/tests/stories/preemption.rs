//! Proposal 002: preemption between policies (P1 to P6).

use crate::story::tell;

fn tell_twins(steps: &str) {
    tell(steps);
    tell(&steps.replace("policy pp", "cluster-policy pp"));
}

#[test]
fn p2_a_higher_priority_takes_and_p6_the_template_is_matched_again_afterwards() {
    tell_twins(
        "policy pp1 selects nginx on m1 priority 2
         deployment nginx
         policy pp2 selects nginx in default on m3 priority 3 always
         expect nginx by pp2 on m3
         delete pp2
         expect nginx by pp1 on m1",
    );
}

#[test]
fn p2_equal_priority_or_a_better_implicit_rank_never_takes() {
    tell_twins(
        "policy pp1 selects app=nginx on m1
         deployment nginx labels app=nginx
         policy pp2 selects nginx in default on m2 always
         expect nginx by pp1 on m1
         policy pp0 selects nginx in default on m2 priority -1 always
         expect nginx by pp1 on m1",
    );
}

#[test]
fn p2_a_propagation_policy_takes_from_a_cluster_policy_whatever_the_priorities() {
    tell(
        "cluster-policy cpp selects nginx on m1 priority 100
         deployment nginx
         policy pp selects nginx on m2 priority -5 always
         expect nginx by pp on m2
         delete pp
         expect nginx by cpp on m1",
    );
}

#[test]
fn p2_a_cluster_policy_never_takes_from_a_propagation_policy() {
    tell(
        "policy pp selects nginx on m1
         deployment nginx
         cluster-policy cpp selects nginx in default on m2 priority 100 always
         expect nginx by pp on m1",
    );
}

#[test]
fn p1_without_always_nobody_takes() {
    tell_twins(
        "policy pp1 selects nginx on m1
         deployment nginx
         policy pp2 selects nginx on m2 priority 9
         expect nginx by pp1 on m1",
    );
}

#[test]
fn p1_with_the_gate_off_nobody_takes() {
    tell_twins(
        "gate preemption off
         policy pp1 selects nginx on m1
         deployment nginx
         policy pp2 selects nginx on m2 priority 9 always
         expect nginx by pp1 on m1",
    );
}

#[test]
fn p3_corner_case_a_priority_falls() {
    for (other, taken) in [(4, true), (5, true), (3, false)] {
        let end = if taken { "by pp2 on m2" } else { "by pp1 on m1" };
        tell_twins(&format!(
            "policy pp1 selects nginx on m1 priority 5
             deployment nginx
             policy pp2 selects nginx on m2 priority {other} always
             expect nginx by pp1 on m1
             policy pp1 selects nginx on m1 priority 3
             expect nginx {end}"
        ));
    }
}

#[test]
fn p3_the_highest_of_several_takes() {
    tell_twins(
        "policy pp1 selects nginx on m1 priority 9
         deployment nginx
         policy pp2 selects nginx on m2 priority 5 always
         policy pp3 selects nginx on m3 priority 7 always
         policy pp1 selects nginx on m1 priority 1
         expect nginx by pp3 on m3",
    );
}

#[test]
fn p4_a_cluster_policy_with_a_name_takes_it_in_every_namespace() {
    tell(
        "cluster-policy cpp1 selects all on m1
         deployment a/nginx
         deployment b/nginx
         deployment b/other
         cluster-policy cpp2 selects nginx on m2 priority 1 always
         expect a/nginx by cpp2 on m2
         expect b/nginx by cpp2 on m2
         expect b/other by cpp1 on m1",
    );
}

/// Admission refuses it; if it is there all the same, it takes nothing.
#[test]
fn p4_a_selector_without_name_and_namespace_takes_nothing() {
    tell(
        "cluster-policy cpp1 selects all on m1
         deployment nginx
         cluster-policy cpp2 selects all on m2 priority 1 always
         expect nginx by cpp1 on m1
         deployment new
         expect new by cpp2 on m2",
    );
}

#[test]
fn p4_a_label_selector_narrows_what_is_taken() {
    tell(
        "cluster-policy cpp1 selects all on m1
         deployment nginx labels app=nginx
         deployment other
         cluster-policy cpp2 selects app=nginx in default on m2 priority 1 always
         expect nginx by cpp2 on m2
         expect other by cpp1 on m1",
    );
}

#[test]
fn p5_the_claim_moves_at_once_and_the_binding_as_lazy_as_the_taker() {
    tell_twins(
        "policy pp1 selects nginx on m1
         deployment nginx
         policy pp2 selects nginx on m2 priority 1 always lazy
         expect nginx by pp2 on m1
         policy pp3 selects nginx on m3 priority 2 always
         expect nginx by pp3 on m3",
    );
}
