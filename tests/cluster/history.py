"""Everything that happened to some kinds of objects on a test cluster, as its own watches saw it.

A recorder survives what a test does to the API server: it connects again where it stopped, and where that is no longer
possible (410) it lists anew and notes the gap, in which something may have come and gone unseen.
"""

from __future__ import annotations

import json
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from tests.cluster.controlplane import ControlPlane
from tests.cluster.processes import wait_until

Json = dict[str, Any]

PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"
EVENTS = "/api/v1/events"
JOBS = "/apis/batch.volcano.sh/v1alpha1/jobs"
POD_GROUPS = "/apis/scheduling.volcano.sh/v1beta1/podgroups"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
_PAUSE = 0.2
_IDLE = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One event of a watch. `at` is this process's monotonic clock; `seen` is False for a deletion that was concluded
    from a later list, whose object is the last one known."""

    path: str
    type: str
    object: Json
    at: float
    seen: bool = True

    @property
    def uid(self) -> str:
        return str(self.object["metadata"]["uid"])

    @property
    def name(self) -> str:
        """`namespace/name`."""
        metadata = self.object["metadata"]
        return f"{metadata.get('namespace', '')}/{metadata['name']}"


class Recorder:
    """Watches from `__enter__` to `__exit__`, one thread for each path. What exists at the start counts as ADDED."""

    def __init__(self, plane: ControlPlane, *paths: str) -> None:
        self._plane = plane
        self._paths = paths or (PODS, POD_GROUPS, JOBS)
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._changes: list[Change] = []
        self._followers = [_Follower(path, self) for path in self._paths]
        self.gaps = 0
        self.errors: list[str] = []

    def __enter__(self) -> Self:
        for follower in self._followers:
            follower.start()
        for follower in self._followers:
            assert follower.listed.wait(60), f"no list of {follower.path} within 60 s"
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for follower in self._followers:
            follower.join(30)

    def changes(self, path: str | None = None) -> list[Change]:
        """What was seen so far, in the order in which it came (of one path: in the server's order)."""
        with self._lock:
            return [change for change in self._changes if path is None or change.path == path]

    def latest(self, path: str) -> dict[str, Json]:
        """The objects that exist by what was seen so far, by `namespace/name`."""
        found: dict[str, Json] = {}
        for change in self.changes(path):
            if change.type == DELETED:
                found.pop(change.name, None)
            else:
                found[change.name] = change.object
        return found

    def catch_up(self) -> None:
        """Return once all that the server has now was seen: a watch is always a little behind what other requests tell,
        and what goes on meanwhile isn't waited for."""
        for path in self._paths:
            with self.open(path, timeout=30) as answer:
                body = json.loads(answer.read())
            then = int(_version(body))
            there = {item["metadata"]["uid"]: int(_version(item)) for item in body["items"]}
            wait_until(f"the watch of {path} is there", lambda p=path, t=there, v=then: self._has_seen(p, t, v))

    def _has_seen(self, path: str, there: Mapping[str, int], then: int) -> bool:
        """Whether these objects were seen in these versions, and the end of all others from before `then`."""
        seen: dict[str, int] = {}
        gone: set[str] = set()
        for change in self.changes(path):
            seen[change.uid] = int(_version(change.object))
            if change.type == DELETED:
                gone.add(change.uid)
        return all(uid in gone or seen.get(uid, 0) >= version for uid, version in there.items()) and all(
            uid in gone or uid in there or version > then for uid, version in seen.items()
        )

    # For the followers

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def pause(self) -> None:
        self._stopping.wait(_PAUSE)

    def saw(self, changes: Iterable[Change], *, gap: bool = False) -> None:
        with self._lock:
            self._changes.extend(changes)
            self.gaps += gap

    def open(self, path: str, *, timeout: float) -> Any:
        return urllib.request.urlopen(self._plane.server + path, context=self.context(), timeout=timeout)

    def context(self) -> ssl.SSLContext:
        return self._plane.client_context


class _Expired(Exception):
    """The server no longer has the changes after the last one seen."""


class _Follower(threading.Thread):
    """List, then watch; again and again."""

    def __init__(self, path: str, recorder: Recorder) -> None:
        super().__init__(name=f"recorder of {path}", daemon=True)
        self.path = path
        self.listed = threading.Event()
        self._recorder = recorder
        self._known: dict[str, Json] = {}
        self._version = ""

    def run(self) -> None:
        while not self._recorder.stopping:
            try:
                if not self._version:
                    self._list()
                self._watch()
            except _Expired:
                self._version = ""
            except (OSError, ValueError) as error:
                if not self._recorder.stopping:
                    self._recorder.errors.append(f"{self.path}: {error!r}")
                self._recorder.pause()

    def _list(self) -> None:
        with self._recorder.open(self.path, timeout=10) as answer:
            body = json.loads(answer.read())
        now = time.monotonic()
        found = {item["metadata"]["uid"]: item for item in body["items"]}
        changes = [
            Change(path=self.path, type=DELETED, object=old, at=now, seen=False)
            for uid, old in self._known.items()
            if uid not in found
        ]
        # A list is in the order of names; what came first was written first.
        for uid, item in sorted(found.items(), key=lambda each: int(_version(each[1]))):
            kind = MODIFIED if uid in self._known else ADDED
            if uid not in self._known or _version(self._known[uid]) != _version(item):
                changes.append(Change(path=self.path, type=kind, object=item, at=now))
        self._recorder.saw(changes, gap=self.listed.is_set())
        self._known = found
        self._version = body["metadata"]["resourceVersion"]
        self.listed.set()

    def _watch(self) -> None:
        query = f"?watch=1&allowWatchBookmarks=true&timeoutSeconds=3&resourceVersion={self._version}"
        try:
            with self._recorder.open(self.path + query, timeout=_IDLE) as stream:
                for event in _lines(stream):
                    self._take(event)
                    if self._recorder.stopping:
                        return
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 410:
                    raise _Expired from None
            raise OSError(f"HTTP {error.code}") from None

    def _take(self, event: Mapping[str, Any]) -> None:
        kind, item = event["type"], event["object"]
        if kind == "ERROR":
            if item.get("code") == 410:
                raise _Expired
            raise OSError(f"watch: {item}")
        self._version = item["metadata"]["resourceVersion"]
        if kind == "BOOKMARK":
            return
        uid = item["metadata"]["uid"]
        if kind == DELETED:
            self._known.pop(uid, None)
        else:
            self._known[uid] = item
        self._recorder.saw([Change(path=self.path, type=kind, object=item, at=time.monotonic())])


def _lines(stream: Iterable[bytes]) -> Iterator[Json]:
    for line in stream:
        if line.endswith(b"\n"):
            yield json.loads(line)


def _version(item: Json) -> str:
    """Of an object, or of a list."""
    return str(item["metadata"]["resourceVersion"])
