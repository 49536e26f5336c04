//! Proposal 003: suspension (U1, U3, U4, U7, U8) as far as claims and bindings are concerned.

use crate::story::tell;

#[test]
fn u1_u3_example_suspend_everything_and_resume() {
    tell(
        "policy pp selects nginx on m1,m2,m3
         deployment nginx
         policy pp selects nginx on m1,m2,m3 suspend all
         edit nginx version v2
         expect nginx by pp on m1@v1,m2@v1,m3@v1
         policy pp selects nginx on m1,m2,m3
         expect nginx by pp on m1@v2,m2@v2,m3@v2",
    );
}

#[test]
fn u1_u3_example_cluster_by_cluster() {
    tell(
        "policy pp selects nginx on m1,m2,m3
         deployment nginx
         policy pp selects nginx on m1,m2,m3 suspend m2,m3
         edit nginx version v2
         expect nginx by pp on m1@v2,m2@v1,m3@v1
         policy pp selects nginx on m1,m2,m3 suspend m3
         expect nginx by pp on m1@v2,m2@v2,m3@v1",
    );
}

#[test]
fn u4_corner_case_suspension_does_not_block_deletion() {
    tell(
        "policy pp selects nginx on m1,m2 suspend all
         deployment nginx
         expect nginx by pp on nothing
         policy pp selects nginx on m1,m2
         expect nginx by pp on m1,m2
         policy pp selects nginx on m1 suspend all
         expect nginx by pp on m1
         delete nginx",
    );
}

#[test]
fn u7_a_rollout_policy_holds_single_templates() {
    tell(
        "policy pp selects all on m1,m2,m3
         deployment nginx
         deployment other
         rollout rp selects nginx suspend m2,m3
         edit nginx version v2
         edit other version v2
         expect nginx by pp on m1@v2,m2@v1,m3@v1
         expect other by pp on m1@v2,m2@v2,m3@v2
         rollout rp selects nginx suspend m3
         expect nginx by pp on m1@v2,m2@v2,m3@v1
         delete rollout rp
         expect nginx by pp on m1@v2,m2@v2,m3@v2",
    );
}

#[test]
fn u7_held_when_either_says_so() {
    tell(
        "policy pp selects nginx on m1,m2 suspend m1
         deployment nginx
         expect nginx by pp on m2
         rollout rp selects nginx suspend m2
         edit nginx version v2
         expect nginx by pp on m2@v1
         policy pp selects nginx on m1,m2
         expect nginx by pp on m1@v2,m2@v1
         delete rollout rp
         expect nginx by pp on m1@v2,m2@v2",
    );
}

#[test]
fn u8_deleting_the_policy_leaves_the_brake_on() {
    tell(
        "policy pp selects nginx on m1 suspend all
         deployment nginx
         expect nginx by pp on nothing
         rollout rp selects nginx suspend all
         delete pp
         delete rollout rp
         expect nginx by nobody on nothing
         policy pp2 selects nginx on m1
         expect nginx by pp2 on m1",
    );
}

#[test]
fn u6_a_dependency_is_held_with_everybody_who_needs_it() {
    tell(
        "configmap conf
         policy pp1 selects one on m1 deps suspend all
         policy pp2 selects two on m1 deps
         deployment one needs conf
         expect conf by nobody on nothing
         deployment two needs conf
         expect conf by nobody on m1",
    );
}

#[test]
fn l5_the_brake_acts_in_static_mode_too() {
    tell(
        "gate static
         policy pp selects nginx on m1
         deployment nginx
         policy pp selects nginx on m2 suspend all
         expect nginx by pp on m1
         edit nginx version v2
         expect nginx by pp on nothing
         policy pp selects nginx on m2
         expect nginx by pp on m2@v2",
    );
}
