"""Creates, reads, changes and deletes with typed and untyped clients, and looks at the errors."""

import json

from kubernetes import client
from kubernetes.client.rest import ApiException

from connection import NAMESPACE, config_map, core, expect


def refused(status, reason, call, *arguments, **options):
    """Expects this error from a call."""
    try:
        call(*arguments, **options)
    except ApiException as error:
        expect((error.status, json.loads(error.body)["reason"]), (status, reason), call.__name__)
    else:
        expect("success", reason, call.__name__)


def config_maps(api):
    made = api.create_namespaced_config_map(NAMESPACE, config_map("a", "blue"))
    expect(api.read_namespaced_config_map("a", NAMESPACE).metadata.uid, made.metadata.uid, "read")
    refused(409, "AlreadyExists", api.create_namespaced_config_map, NAMESPACE, config_map("a", "blue"))
    refused(404, "NotFound", api.read_namespaced_config_map, "nothing", NAMESPACE)
    refused(422, "Invalid", api.create_namespaced_config_map, NAMESPACE, config_map("Not_A_Name", "blue"))

    made.data["colour"] = "green"
    changed = api.replace_namespaced_config_map("a", NAMESPACE, made)
    expect(int(changed.metadata.resource_version) > int(made.metadata.resource_version), True, "version grows")
    refused(409, "Conflict", api.replace_namespaced_config_map, "a", NAMESPACE, made)
    patched = api.patch_namespaced_config_map("a", NAMESPACE, {"data": {"size": "9"}})
    expect(patched.data, {"colour": "green", "size": "9"}, "merge")

    for number in range(25):
        api.create_namespaced_secret(NAMESPACE, client.V1Secret(
            metadata=client.V1ObjectMeta(name=f"s{number:02}", labels={"even": str(number % 2 == 0)})))
    names, token = [], None
    while token != "":
        page = api.list_namespaced_secret(NAMESPACE, limit=10, _continue=token)
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue or ""
    expect(names, [f"s{number:02}" for number in range(25)], "pages")
    even = api.list_namespaced_secret(NAMESPACE, label_selector="even=True")
    expect(len(even.items), 13, "selected")
    api.delete_collection_namespaced_secret(NAMESPACE)
    expect(api.list_namespaced_secret(NAMESPACE).items, [], "deleted together")
    api.delete_namespaced_config_map("a", NAMESPACE)
    refused(404, "NotFound", api.delete_namespaced_config_map, "a", NAMESPACE)


def deployments(api_client):
    api = client.AppsV1Api(api_client)
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels={"app": "web"}),
        spec=client.V1PodSpec(containers=[client.V1Container(name="nginx", image="nginx")]))
    spec = client.V1DeploymentSpec(
        replicas=1, selector=client.V1LabelSelector(match_labels={"app": "web"}), template=template)
    made = api.create_namespaced_deployment(
        NAMESPACE, client.V1Deployment(metadata=client.V1ObjectMeta(name="web"), spec=spec))
    expect(made.spec.strategy.rolling_update.max_surge, "25%", "defaults")
    scale = api.read_namespaced_deployment_scale("web", NAMESPACE)
    scale.spec.replicas = 4
    api.replace_namespaced_deployment_scale("web", NAMESPACE, scale)
    made = api.read_namespaced_deployment("web", NAMESPACE)
    expect((made.spec.replicas, made.metadata.generation), (4, 2), "scaled")
    made.status.replicas = 4
    expect(api.replace_namespaced_deployment_status("web", NAMESPACE, made).status.replicas, 4, "status")


def custom(api_client):
    schema = client.V1JSONSchemaProps(
        type="object",
        properties={"spec": client.V1JSONSchemaProps(
            type="object", properties={"boats": client.V1JSONSchemaProps(type="integer", default=2)})})
    version = client.V1CustomResourceDefinitionVersion(
        name="v1", served=True, storage=True,
        schema=client.V1CustomResourceValidation(open_apiv3_schema=schema))
    names = client.V1CustomResourceDefinitionNames(plural="ships", kind="Ship")
    definition = client.V1CustomResourceDefinition(
        metadata=client.V1ObjectMeta(name="ships.example.com"),
        spec=client.V1CustomResourceDefinitionSpec(
            group="example.com", scope="Namespaced", names=names, versions=[version]))
    client.ApiextensionsV1Api(api_client).create_custom_resource_definition(definition)
    api = client.CustomObjectsApi(api_client)
    place = ("example.com", "v1", NAMESPACE, "ships")
    ship = {"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": "beagle"}, "spec": {}}
    expect(api.create_namespaced_custom_object(*place, ship)["spec"], {"boats": 2}, "custom defaults")
    expect(len(api.list_namespaced_custom_object(*place)["items"]), 1, "custom list")
    ship["spec"] = {"boats": "many"}
    ship["metadata"]["name"] = "other"
    refused(422, "Invalid", api.create_namespaced_custom_object, *place, ship)


core_api = core()
config_maps(core_api)
deployments(core_api.api_client)
custom(core_api.api_client)
print("done")
