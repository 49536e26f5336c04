//! Proposal 000: policies that never touch what runs (S1 to S6, R1, R2).

use crate::story::tell;

/// The same story for PropagationPolicies and for ClusterPropagationPolicies.
fn tell_twins(steps: &str) {
    tell(steps);
    tell(&steps.replace("policy pp", "cluster-policy pp"));
}

#[test]
fn s1_general_case_1_and_test_case_1() {
    tell_twins(
        "gate static
         deployment nginx
         expect nginx by nobody on nothing
         policy pp1 selects nginx on m1
         expect nginx by pp1 on m1",
    );
}

#[test]
fn s2_general_case_2_and_test_case_2() {
    tell_twins(
        "gate static
         policy pp1 selects nginx on m1
         deployment nginx
         expect nginx by pp1 on m1
         policy pp1 selects nginx on m2
         expect nginx by pp1 on m1
         edit nginx
         expect nginx by pp1 on m2",
    );
}

#[test]
fn s3_general_case_3_and_test_case_3() {
    tell_twins(
        "gate static
         policy pp1 selects nginx on m1 priority 1
         deployment nginx
         expect nginx by pp1 on m1
         policy pp2 selects nginx on m2 priority 2
         expect nginx by pp1 on m1
         edit nginx
         expect nginx by pp2 on m2",
    );
}

#[test]
fn s3_general_case_4_and_test_case_4() {
    tell_twins(
        "gate static
         policy pp1 selects nginx on m1 priority 1
         deployment nginx
         policy pp1 selects nginx on m3 priority 1
         expect nginx by pp1 on m1
         policy pp2 selects nginx on m2 priority 2
         expect nginx by pp1 on m1
         edit nginx
         expect nginx by pp2 on m2",
    );
}

#[test]
fn s6_general_case_5_ends_with_the_second_policy() {
    tell_twins(
        "gate static
         policy pp1 selects nginx on m1 priority 2
         deployment nginx
         expect nginx by pp1 on m1
         policy pp2 selects nginx on m2 priority 1
         expect nginx by pp1 on m1
         policy pp1 selects other on m1 priority 2
         expect nginx by nobody on m1
         edit nginx
         expect nginx by pp2 on m2",
    );
}

#[test]
fn s2_s4_test_case_5_the_claim_goes_and_the_propagation_stays() {
    tell_twins(
        "gate static
         policy pp1 selects nginx on m1 priority 1
         policy pp2 selects nginx on m2 priority 2
         deployment nginx
         expect nginx by pp2 on m2
         policy pp2 selects other on m2 priority 2
         expect nginx by nobody on m2
         expect-binding nginx of nobody
         policy pp3 selects nginx on m3 priority 9
         expect nginx by nobody on m2
         delete pp3
         edit nginx
         expect nginx by pp1 on m1",
    );
}

#[test]
fn s3_r2_corner_case_1_and_test_case_6() {
    tell_twins(
        "gate static
         policy pp1 selects nginx on m1
         deployment nginx replicas 2
         expect nginx by pp1 on m1:2
         delete pp1
         expect nginx by nobody on m1:2
         expect-binding nginx of nobody
         edit nginx replicas 5
         expect nginx by nobody on m1:2
         policy pp2 selects nginx on m2
         expect nginx by pp2 on m2:5",
    );
}

#[test]
fn r1_corner_case_2_restarts_activate_nothing() {
    tell_twins(
        "gate static
         policy pp1 selects nginx on m1
         deployment nginx
         restart
         expect nginx by pp1 on m1
         policy pp1 selects nginx on m2
         restart
         expect nginx by pp1 on m1
         bookkeeping nginx
         restart
         expect nginx by pp1 on m1
         edit nginx
         restart
         expect nginx by pp1 on m2",
    );
}

#[test]
fn s3_the_waiting_list_remembers_a_change_that_was_taken_back() {
    tell_twins(
        "gate static
         policy pp1 selects nginx on m1
         deployment nginx replicas 2
         delete pp1
         edit nginx replicas 5
         edit nginx replicas 2
         expect nginx by nobody on m1:2
         policy pp2 selects nginx on m2
         expect nginx by pp2 on m2:2
         policy pp2 selects nginx on m3
         expect nginx by pp2 on m2:2",
    );
}

#[test]
fn s3_a_template_that_comes_back_to_its_policy_gets_it_as_it_is_now() {
    tell_twins(
        "gate static
         policy pp1 selects team=a on m1
         deployment nginx labels team=a
         policy pp1 selects team=a on m2
         expect nginx by pp1 on m1
         edit nginx labels team=b
         expect nginx by nobody on m1
         edit nginx labels team=a
         expect nginx by pp1 on m2
         policy pp1 selects team=a on m3
         expect nginx by pp1 on m2",
    );
}

#[test]
fn s3_a_user_change_chooses_anew_by_the_full_ranking() {
    tell(
        "gate static
         cluster-policy cpp1 selects nginx on m1 priority 9
         deployment nginx
         expect nginx by cpp1 on m1
         policy pp2 selects all on m2
         policy pp3 selects nginx on m3
         expect nginx by cpp1 on m1
         edit nginx
         expect nginx by pp3 on m3",
    );
}

#[test]
fn s5_nothing_is_preempted() {
    tell_twins(
        "gate static
         policy pp1 selects nginx on m1
         deployment nginx
         policy pp2 selects nginx on m2 priority 9 always
         expect nginx by pp1 on m1",
    );
}

#[test]
fn static_and_lazy_together_wait_for_the_stricter_one() {
    tell_twins(
        "gate static
         deployment nginx
         policy pp1 selects nginx on m1 lazy
         expect nginx by pp1 on nothing
         edit nginx
         expect nginx by pp1 on m1
         policy pp1 selects nginx on m2
         expect nginx by pp1 on m1
         delete pp1
         edit nginx
         policy pp2 selects nginx on m3 lazy
         expect nginx by pp2 on m1
         edit nginx
         expect nginx by pp2 on m3",
    );
}

#[test]
fn s2_a_reconcile_is_asked_for() {
    tell_twins(
        "gate static
         policy pp1 selects nginx on m1
         deployment nginx
         policy pp1 selects nginx on m2
         policy pp2 selects nginx on m3 priority 5
         reconcile nginx
         expect nginx by pp1 on m2
         restart
         policy pp1 selects nginx on m1
         expect nginx by pp1 on m2",
    );
}

#[test]
fn b3_a_template_that_becomes_excluded_waits_like_any_unclaimed_one() {
    tell_twins(
        "gate static
         policy pp1 selects all on m1
         deployment nginx
         policy pp2 selects all on m2
         policy pp1 selects all on m1 leaves-out nginx
         expect nginx by nobody on m1
         edit nginx
         expect nginx by pp2 on m2",
    );
}
