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

/// Types a command until everything of this is in what it prints.
#[track_caller]
fn until(kubectl: &Kubectl, line: &str, parts: &[&str]) -> String {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let printed = kubectl.ok(line).stdout;
        let missing = parts.iter().find(|part| !words(&printed).contains(&words(part)));
        let Some(missing) = missing else { return printed };
        assert!(std::time::Instant::now() < deadline, "$ kubectl {line}\n{printed}\nwithout {missing:?}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

fn web(kind: &str, name: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: policy.karmada.io/v1alpha1, kind: {kind}, metadata: {{name: {name}}}, spec: {{{spec}, \
         resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment}}]}}}}"
    )
}

#[test]
fn the_story_is_told_to_who_describes_it() {
    let Some(kubectl) = Kubectl::with_members(env!("CARGO_BIN_EXE_longshore"), 2) else { return };
    kubectl.ok("wait clusters --all --for=condition=Ready --timeout=60s");
    let lazy = |clusters: &str| {
        let spec = format!(
            "activationPreference: Lazy, placement: {{clusterAffinity: {{clusterNames: [{clusters}]}}}}"
        );
        web("ClusterPropagationPolicy", "usual", &spec)
    };
    kubectl.ok_with("apply -f -", &lazy("member1"));
    until(&kubectl, "describe cpp usual", &["Message: It claims no template.", "Reason: NothingClaimed"]);
    kubectl.ok("create deployment nginx --image=nginx --replicas=2");
    kubectl.ok("wait cpp/usual --for=jsonpath={.status.templates.upToDate}=1 --timeout=60s");

    // A policy that waits says for what, and the binding which generation holds.
    kubectl.ok_with("apply -f -", &lazy("member1, member2"));
    until(
        &kubectl,
        "describe cpp usual",
        &[
            "Message: 1 of 1 templates do not follow its generation 2 until they change, because it is lazy.",
            "Reason: Lazy Status: False Type: InEffect",
            "Pending Activation: 1",
        ],
    );
    until(&kubectl, "get cpp", &["usual Abort 0 1 1 0"]);
    until(&kubectl, "get rb", &["SCHEDULED FULLYAPPLIED POLICY GENERATION STAGE PHASE AGE", "cpp/usual 1"]);

    // Preempted by another policy, and suspended: policy, template and binding each show it.
    let rival = "priority: 1, preemption: Always, suspension: {dispatching: true}, \
                 placement: {clusterAffinity: {clusterNames: [member2]}}";
    kubectl.ok_with("apply -f -", &web("PropagationPolicy", "rival", rival));
    until(
        &kubectl,
        "describe deployment nginx",
        &[
            "propagationpolicy.karmada.io/name: rival",
            "Normal ApplyPolicySucceed",
            "Apply cluster policy(usual) succeed",
            "Normal PreemptPolicySucceed",
            "Propagation policy(default/rival) preempted cluster propagation policy(usual) successfully",
            "Binding has been scheduled successfully. Result: {member2:2}",
        ],
    );
    until(
        &kubectl,
        "describe pp rival",
        &[
            "Message: All templates that it claims, 1, follow its generation 1.",
            "Reason: EverythingFollows Status: True Type: InEffect",
            "Message: 1 of 1 templates are suspended, in all or in some clusters.",
            "Reason: SuspendDispatching Status: False Type: Dispatching",
            "Preempted From: 1",
        ],
    );
    until(
        &kubectl,
        "describe rb nginx-deployment",
        &[
            "longshore.io/policy: pp/rival",
            "longshore.io/generation: 1",
            "Suspension: Dispatching: true",
            "Reason: Success Status: True Type: Scheduled",
            "Normal ScheduleBindingSucceed",
        ],
    );
    until(&kubectl, "get pp,cpp,rb", &["/rival Abort 1 1 0 1", "/usual Abort 0 0 0 0", "pp/rival 1"]);
    until(&kubectl, "get cpp -o wide", &["PREEMPTED-BY", "Lazy Never 0 0 1"]);
}

/// What kubectl explains, with its line breaks undone.
fn explained(kubectl: &Kubectl, field: &str) -> String {
    kubectl.ok(&format!("explain {field}")).stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn explain_teaches_namespace_patterns_and_exclusions() {
    let Some(kubectl) = Kubectl::with_server(env!("CARGO_BIN_EXE_longshore")) else { return };
    let namespace = explained(&kubectl, "pp.spec.resourceSelectors.namespace");
    assert!(namespace.contains("FIELD: namespace <string>"), "{namespace}");
    for taught in ["comma-separated list", "`prod,user1-*`", "refused", "own namespace", "`exclude`"] {
        assert!(namespace.contains(taught), "{taught:?} is not taught: {namespace}");
    }
    let twin = explained(&kubectl, "cpp.spec.resourceSelectors.namespace");
    assert_eq!(
        twin.split_once("DESCRIPTION:"),
        Some((
            "GROUP: policy.karmada.io KIND: ClusterPropagationPolicy VERSION: v1alpha1 FIELD: namespace <string> ",
            namespace.split_once("DESCRIPTION:").expect("a description").1
        ))
    );
    for (field, taught) in [
        ("pp", "PropagationPolicies go before ClusterPropagationPolicies"),
        ("pp.metadata", "metadata"),
        ("pp.spec.activationPreference", "removing Lazy activates all that waits"),
        ("cpp.spec.preemption", "must then have a name or a namespace"),
        ("rb.spec.failover.cluster.evictLastCopy", "LastCopyKept"),
        ("cop.spec.overrideRules.overriders.plaintext.path", "`/spec/replicas`"),
        ("clusters.spec.taints.effect", "`NoExecute` also evicts those that run"),
    ] {
        let about = explained(&kubectl, field);
        assert!(!about.contains("<empty>") && about.contains(taught), "{field}: {about}");
    }
}

/// Client-side apply keeps the whole definition in an annotation, whose size is limited.
#[test]
fn the_printed_definitions_can_be_applied() {
    let binary = env!("CARGO_BIN_EXE_longshore");
    let Some(kubectl) = Kubectl::with_server(binary) else { return };
    let printed = std::process::Command::new(binary).arg("crds").output().expect("it starts");
    let definitions = String::from_utf8(printed.stdout).expect("text");
    let applied = kubectl.ok_with("apply -f -", &definitions).stdout;
    assert_eq!(applied.lines().count(), api::kinds::ALL.len(), "{applied}");
}
