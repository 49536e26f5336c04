//! What administrators do: nodes, certificates, service accounts.

use super::kubectl;

#[test]
fn nodes_are_cordoned_and_tainted() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("create -f -", "{apiVersion: v1, kind: Node, metadata: {name: cordon-one}}");
    kubectl.ok("cordon cordon-one").prints("node/cordon-one cordoned\n");
    kubectl.ok("get node cordon-one -o jsonpath={.spec.unschedulable}").prints("true");
    kubectl.ok("uncordon cordon-one").prints("node/cordon-one uncordoned\n");
    kubectl.ok("taint node cordon-one colour=blue:NoSchedule").prints("node/cordon-one tainted\n");
    kubectl.ok("describe node cordon-one").has_row("Taints: colour=blue:NoSchedule");
    kubectl.ok("taint node cordon-one colour-").prints("node/cordon-one untainted\n");
    kubectl.ok("drain cordon-one").shows("node/cordon-one drained\n");
}
