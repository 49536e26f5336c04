//! Discovery by kubectl: versions, resources, schemas, `auth whoami` and `auth can-i`.

use super::kubectl;

#[test]
fn version_names_client_and_server() {
    let Some(kubectl) = kubectl() else { return };
    let version = kubectl.ok("version -o json").json();
    assert_eq!(version["serverVersion"]["major"], "1");
    assert_eq!(version["serverVersion"]["minor"], "35");
}

#[test]
fn api_resources_lists_what_people_deploy() {
    let Some(kubectl) = kubectl() else { return };
    kubectl
        .ok("api-resources")
        .has_row("NAME SHORTNAMES APIVERSION NAMESPACED KIND")
        .has_row("configmaps cm v1 true ConfigMap")
        .has_row("namespaces ns v1 false Namespace")
        .has_row("deployments deploy apps/v1 true Deployment")
        .has_row("cronjobs cj batch/v1 true CronJob")
        .has_row("horizontalpodautoscalers hpa autoscaling/v2 true HorizontalPodAutoscaler")
        .has_row("ingresses ing networking.k8s.io/v1 true Ingress")
        .has_row("clusterroles rbac.authorization.k8s.io/v1 false ClusterRole")
        .has_row("customresourcedefinitions crd,crds apiextensions.k8s.io/v1 false CustomResourceDefinition")
        .has_row("selfsubjectreviews authentication.k8s.io/v1 false SelfSubjectReview");
}

#[test]
fn api_resources_can_be_narrowed() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok("api-resources --api-group=batch -o name").prints("cronjobs.batch\njobs.batch\n");
    kubectl.ok("api-resources --api-group=apps -o wide --no-headers --sort-by=name").has_row(
        "deployments deploy apps/v1 true Deployment \
         create,delete,deletecollection,get,list,patch,update,watch all",
    );
    kubectl.ok("api-resources --namespaced=false -o name").shows("nodes\n").hides("pods");
    kubectl.ok("api-resources --categories=all -o name").shows("services\n").hides("configmaps");
}

#[test]
fn api_versions_lists_groups() {
    let Some(kubectl) = kubectl() else { return };
    kubectl
        .ok("api-versions")
        .has_row("v1")
        .has_row("apps/v1")
        .has_row("autoscaling/v1")
        .has_row("autoscaling/v2")
        .has_row("apiextensions.k8s.io/v1");
}

#[test]
fn explain_shows_fields_with_their_types() {
    let Some(kubectl) = kubectl() else { return };
    kubectl
        .ok("explain deployment.spec.strategy")
        .has_row("GROUP: apps")
        .has_row("KIND: Deployment")
        .has_row("VERSION: v1")
        .has_row("FIELD: strategy <DeploymentStrategy>")
        .has_row("rollingUpdate <RollingUpdateDeployment>")
        .shows("type\t<string>");
    kubectl.ok("explain pods --recursive").has_row("containers <[]Container> -required-");
    kubectl.fails("explain deployment.spec.stratgy").complains("error: field \"stratgy\" does not exist");
    kubectl.fails("explain wombats").complains("the server doesn't have a resource type \"wombats\"");
}

#[test]
fn who_am_i_and_what_may_i_do() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok("auth whoami").has_row("ATTRIBUTE VALUE").shows("system:masters");
    kubectl.ok("auth can-i create deployments").prints("yes\n");
    kubectl.ok("auth can-i '*' '*' --all-namespaces").prints("yes\n");
    kubectl.ok("auth can-i get pods --subresource=log").prints("yes\n");
    kubectl.ok("auth can-i get /healthz").prints("yes\n");
    kubectl.ok("auth can-i --list").has_row("*.* [] [] [*]").has_row("[*] [] [*]");
}

#[test]
fn a_service_account_gets_a_token_and_what_is_bound_to_it() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok("create namespace bound");
    kubectl.ok("create serviceaccount robot -n bound");
    kubectl.ok("create token robot -n bound --duration=20m").shows("eyJ");
    kubectl.ok("create rolebinding robot -n bound --clusterrole=view --serviceaccount=bound:robot");
    let robot = "--as=system:serviceaccount:bound:robot";
    kubectl.ok(&format!("auth can-i list pods -n bound {robot}")).prints("yes\n");
    kubectl
        .ok(&format!("auth can-i --list -n bound {robot}"))
        .shows("selfsubjectreviews.authentication.k8s.io");
    kubectl.ok(&format!("auth whoami {robot}")).shows("system:serviceaccounts:bound");
}

#[test]
fn raw_paths_answer() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok("get --raw /healthz").prints("ok");
    kubectl.ok("get --raw /livez").prints("ok");
    kubectl.ok("get --raw /readyz").prints("ok");
    kubectl.ok("get --raw /readyz?verbose").shows("[+]ping ok\n").shows("readyz check passed\n");
    let list = kubectl.ok("get --raw /api/v1/namespaces/default/configmaps?limit=1").json();
    assert_eq!(list["kind"], "ConfigMapList");
    kubectl.ok("get --raw /readyz/ping").prints("ok");
    kubectl
        .fails("get --raw /readyz/nothing")
        .complains("the server could not find the requested resource\n");
    kubectl.fails("get --raw /api/v1/pods?resourceVersion=x").complains(
        "Error from server (BadRequest): invalid resource version: resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid syntax\n",
    );
    kubectl.fails("get --raw /api/v1/pods?watch=true&resourceVersion=x").complains(
        "Error from server: resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid syntax\n",
    );
    kubectl
        .fails("get --raw /api/v1/pods?continue=x")
        .complains("Error from server (BadRequest): invalid continue token: continue key is not valid: ");
    kubectl
        .fails("get --raw /no/such/path")
        .complains("Error from server (NotFound): the server could not find the requested resource\n");
    kubectl
        .fails("get --raw /api/v1/namespaces/default/configmaps/nothing")
        .complains("Error from server (NotFound): configmaps \"nothing\" not found\n");
}

#[test]
fn cluster_info_finds_the_control_plane() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok("cluster-info").shows("is running at").shows("https://127.0.0.1:");
}
