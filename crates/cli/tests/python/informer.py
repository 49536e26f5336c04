"""Follows the config maps of a namespace that carry a label as an informer does: list, then watch from where the list
or the last event was; list anew when the server says 410. Prints a line of JSON for each list, watch and event, and, whenever
it reads "store", what it has. Between "hold" and "go" it takes nothing from the server."""

import json
import sys
import threading
import time

import urllib3
from kubernetes import watch
from kubernetes.client.rest import ApiException

from connection import NAMESPACE, core, fail

LABEL = sys.argv[2]
printing = threading.Lock()
going = threading.Event()
going.set()
items = {}


def tell(what, **more):
    """Prints one line."""
    with printing:
        print(json.dumps({"what": what, **more}), flush=True)


def listed(api):
    """Reads everything and answers with the revision of it."""
    found = api.list_namespaced_config_map(NAMESPACE, label_selector=LABEL)
    with printing:
        items.clear()
        items.update({item.metadata.name: item.metadata.resource_version for item in found.items})
    tell("list", rv=found.metadata.resource_version)
    return found.metadata.resource_version


def take(event):
    """Follows one event and answers with its revision."""
    metadata = event["raw_object"]["metadata"]
    name, version = metadata.get("name", ""), metadata["resourceVersion"]
    tell("event", type=event["type"], name=name, rv=version)
    with printing:
        if event["type"] == "DELETED":
            items.pop(name, None)
        elif event["type"] != "BOOKMARK":
            items[name] = version
    return version


def follow():
    """Follows the server for ever."""
    version = None
    while True:
        try:
            going.wait()
            api = core()
            version = version or listed(api)
            tell("watch", type="from", rv=version)
            options = {"resource_version": version, "timeout_seconds": 3, "allow_watch_bookmarks": True}
            stream = watch.Watch().stream(
                api.list_namespaced_config_map, NAMESPACE, label_selector=LABEL, **options
            )
            for event in stream:
                going.wait()
                version = take(event)
        except ApiException as error:
            # 401 and 503 are those of a server that begins or ends.
            if error.status not in (401, 410, 503):
                fail(f"the server answers {error.status}: {error.body}")
            if error.status == 410:
                version = None
        except (urllib3.exceptions.HTTPError, OSError, ValueError):
            # The server is being restarted, in the middle of a line perhaps; the watch goes on where it was.
            time.sleep(0.05)


threading.Thread(target=follow, daemon=True).start()
for line in sys.stdin:
    if line == "hold\n":
        going.clear()
    elif line == "go\n":
        going.set()
    else:
        with printing:
            copy = dict(items)
        tell("store", store=copy)
