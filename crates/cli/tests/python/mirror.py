"""Mirrors all config maps as a controller does: list once, then watch from where the list or the last event
was, through broken connections and restarts; list anew only when the server says 410. For each line on
standard input it waits until the mirror is what a list shows, and prints how often it had to list."""

import sys
import threading
import time

import urllib3
from kubernetes import watch
from kubernetes.client.rest import ApiException

from connection import NAMESPACE, core, deadline, fail, outline


class Mirror:
    def __init__(self):
        self.items = {}
        self.version = None
        self.lists = 0
        self.changed = threading.Condition()

    def run(self):
        """Follows the server for ever."""
        while True:
            try:
                self.follow(core())
            except ApiException as error:
                if error.status != 410:
                    raise
                self.version = None
            except (urllib3.exceptions.HTTPError, OSError):
                # The server is being restarted; nothing is lost, the watch goes on where it was.
                time.sleep(0.05)

    def follow(self, api):
        if self.version is None:
            self.list(api)
        stream = watch.Watch()
        options = {"resource_version": self.version, "timeout_seconds": 300, "allow_watch_bookmarks": True}
        for event in stream.stream(api.list_namespaced_config_map, NAMESPACE, **options):
            with self.changed:
                self.take(event)
                self.changed.notify_all()

    def list(self, api):
        found = api.list_namespaced_config_map(NAMESPACE)
        with self.changed:
            self.items = {item.metadata.name: outline(item) for item in found.items}
            self.version = found.metadata.resource_version
            self.lists += 1
            self.changed.notify_all()

    def take(self, event):
        metadata = event["raw_object"]["metadata"]
        before, now = int(self.version), int(metadata["resourceVersion"])
        if now < before or (now == before and event["type"] != "BOOKMARK"):
            fail(f"event {event['type']} at {now} came after {before}")
        name, known = metadata.get("name"), metadata.get("name") in self.items
        if event["type"] == "ADDED" and known or event["type"] in ("MODIFIED", "DELETED") and not known:
            fail(f"event {event['type']} of {name}, which was {'known' if known else 'unknown'}")
        if event["type"] == "DELETED":
            del self.items[name]
        elif event["type"] != "BOOKMARK":
            self.items[name] = outline(event["object"])
        self.version = metadata["resourceVersion"]

    def agrees(self):
        """Waits until the mirror shows what a list shows."""
        listed = {item.metadata.name: outline(item) for item in core().list_namespaced_config_map(NAMESPACE).items}
        end = deadline()
        with self.changed:
            same = self.changed.wait_for(lambda: self.items == listed, timeout=end - time.monotonic())
            if not same:
                fail(f"the mirror has {sorted(self.items)} and a list {sorted(listed)}")
        return len(listed)


mirror = Mirror()
threading.Thread(target=mirror.run, daemon=True).start()
for _ in sys.stdin:
    count = mirror.agrees()
    print(f"{count} objects after {mirror.lists} lists", flush=True)
