"""How every script finds the server, and how it fails."""

import os
import sys
import time

from kubernetes import client, config

NAMESPACE = "default"
PATIENCE_SECONDS = 60


def core():
    """A client for the core kinds, from what the kubeconfig says now: a restarted server has a new port."""
    return client.CoreV1Api(config.new_client_from_config(sys.argv[1]))


def deadline():
    """When to stop waiting for anything."""
    return time.monotonic() + PATIENCE_SECONDS


def fail(message):
    """Ends the script, from whichever thread."""
    print(message, file=sys.stderr, flush=True)
    os._exit(1)


def expect(found, expected, what):
    """Ends the script unless both are the same."""
    if found != expected:
        fail(f"{what}: found {found!r}, expected {expected!r}")


def config_map(name, colour):
    """A small object."""
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data={"colour": colour})


def outline(item):
    """What two views of an object have to agree on."""
    return item.metadata.uid, item.metadata.resource_version, item.data
