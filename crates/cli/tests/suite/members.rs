//! `up --members`: what a new user types, with the real kubectl, from a policy to pods in members and back.

use std::time::{Duration, Instant};

use checks::kubectl::Kubectl;

const POLICY: &str = "
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: { name: nginx }
spec:
  resourceSelectors: [{ apiVersion: apps/v1, kind: Deployment, name: nginx }]
  placement: { clusterAffinity: { clusterNames: [member1, member2] } }
";

/// Runs a command until it prints what is wanted.
fn until(kubectl: &Kubectl, line: &str, wanted: impl Fn(&str) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let outcome = kubectl.run(line);
        if wanted(&outcome.stdout) {
            return;
        }
        assert!(Instant::now() < deadline, "kubectl {line} still prints {:?}", outcome.stdout);
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn pods(kubectl: &Kubectl, member: &str, count: usize) {
    let line = format!("--context {member} get pods -o name");
    until(kubectl, &line, |pods| pods.lines().count() == count);
}

#[test]
fn a_deployment_follows_its_policy_through_the_members() {
    let Some(kubectl) = Kubectl::with_members(env!("CARGO_BIN_EXE_longshore"), 3) else { return };
    kubectl.ok("wait clusters --all --for=condition=Ready --timeout=60s");
    kubectl.ok_with("apply -f -", POLICY);
    kubectl.ok("create deployment nginx --image=nginx --replicas=2");
    pods(&kubectl, "member1", 2);
    pods(&kubectl, "member2", 2);
    until(&kubectl, "get deployment nginx -o jsonpath={.status.readyReplicas}", |ready| ready == "4");

    let hold =
        r#"patch propagationpolicy nginx --type=merge -p '{"spec":{"suspension":{"dispatching":true}}}'"#;
    kubectl.ok(hold);
    until(
        &kubectl,
        "get work -n karmada-es-member1 -o jsonpath={.items[*].spec.suspendDispatching}",
        |held| held.contains("true"),
    );
    kubectl.ok("scale deployment nginx --replicas=3");
    until(&kubectl, "get rb nginx-deployment -o jsonpath={.spec.replicas}", |replicas| replicas == "3");
    pods(&kubectl, "member1", 2);
    let resume = r#"patch propagationpolicy nginx --type=merge -p '{"spec":{"suspension":null}}'"#;
    kubectl.ok(resume);
    pods(&kubectl, "member1", 3);

    let elsewhere = r#"patch propagationpolicy nginx --type=merge -p '{"spec":{"placement":{"clusterAffinity":{"clusterNames":["member3"]}}}}'"#;
    kubectl.ok(elsewhere);
    pods(&kubectl, "member3", 3);
    pods(&kubectl, "member1", 0);
    kubectl.ok("delete deployment nginx");
    pods(&kubectl, "member3", 0);
    until(&kubectl, "get works -A -o name", |works| !works.contains("nginx"));
}

#[test]
fn a_policy_that_makes_no_sense_is_refused_with_an_example() {
    let Some(kubectl) = Kubectl::with_members(env!("CARGO_BIN_EXE_longshore"), 1) else { return };
    let unbounded = "
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: { name: everything }
spec:
  preemption: Always
  resourceSelectors: [{ apiVersion: apps/v1, kind: Deployment }]
";
    let outcome = kubectl.run_with("apply -f -", unbounded);
    assert!(outcome.stderr.contains("spec.resourceSelectors[0]"), "{}", outcome.stderr);
}
