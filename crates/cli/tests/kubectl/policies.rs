//! Policies and bindings as plain kubectl shows them.

use checks::kubectl::Kubectl;

#[test]
fn bindings_show_the_policy_and_the_generation_in_effect() {
    let Some(kubectl) = Kubectl::with_members(env!("CARGO_BIN_EXE_longshore"), 1) else { return };
    kubectl.ok("wait clusters --all --for=condition=Ready --timeout=60s");
    kubectl.ok_with(
        "apply -f -",
        "{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: nginx}, spec: {\
         priority: 3, placement: {clusterAffinity: {clusterNames: [member1]}}, \
         resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]}}",
    );
    kubectl.ok("create deployment nginx --image=nginx");
    kubectl.ok("wait rb/nginx-deployment --for=create --timeout=60s");
    let bindings = kubectl.ok("get rb --no-headers").stdout;
    let words: Vec<&str> = bindings.split_whitespace().collect();
    assert!(words.windows(2).any(|pair| pair == ["pp/nginx", "1"]), "{bindings}");
    kubectl.ok("wait pp/nginx --for=jsonpath={.status.templates.claimed}=1 --timeout=60s");
    let policies = kubectl.ok("get pp").stdout;
    let titles: Vec<&str> = policies.lines().next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(titles, ["NAME", "CONFLICT-RESOLUTION", "PRIORITY", "CLAIMED", "PENDING", "SUSPENDED", "AGE"]);
}
