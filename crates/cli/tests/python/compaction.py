"""Watches from a version that has been compacted away, is told 410, lists anew and misses nothing."""

import time

from kubernetes import watch
from kubernetes.client.rest import ApiException

from connection import NAMESPACE, config_map, core, deadline, expect, fail, outline

api = core()


def events(version, seconds):
    """What happens after a version, for some seconds."""
    stream = watch.Watch()
    options = {"resource_version": version, "timeout_seconds": seconds}
    return list(stream.stream(api.list_namespaced_config_map, NAMESPACE, **options))


def until_compacted(version):
    """Asks again until the server no longer knows the version."""
    end = deadline()
    while time.monotonic() < end:
        try:
            events(version, 1)
        except ApiException as error:
            expect(error.status, 410, "the refusal")
            return str(error)
    fail("the history is never compacted")


start = api.list_namespaced_config_map(NAMESPACE).metadata.resource_version
for number in range(5):
    api.create_namespaced_config_map(NAMESPACE, config_map(f"old-{number}", "blue"))
said = until_compacted(start)
expect("too old resource version" in said, True, said)

listed = api.list_namespaced_config_map(NAMESPACE)
mirror = {item.metadata.name: outline(item) for item in listed.items}
api.create_namespaced_config_map(NAMESPACE, config_map("new", "green"))
api.delete_namespaced_config_map("old-0", NAMESPACE)
for event in events(listed.metadata.resource_version, 2):
    name = event["object"].metadata.name
    mirror.pop(name, None)
    if event["type"] != "DELETED":
        mirror[name] = outline(event["object"])
now = {item.metadata.name: outline(item) for item in api.list_namespaced_config_map(NAMESPACE).items}
expect(mirror, now, "the mirror after 410")
print("done")
