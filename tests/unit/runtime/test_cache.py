"""The cache never goes back, whatever order the world is heard of in."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from vcbatch.api.meta import ObjectMeta, OwnerReference
from vcbatch.api.pod import Pod
from vcbatch.interfaces.api import Listing
from vcbatch.runtime.caches.cache import Cache, Change, deleting


def obj(name: str, uid: str, version: int, **extra: object) -> dict:
    return {"metadata": {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": str(version)}, **extra}


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, dict]]:
    """What really happened to a few names, as the events of a perfect watch."""
    events, alive = [], {}
    for version in range(1, draw(st.integers(2, 26))):
        name = draw(st.sampled_from(["x", "y"]))
        if name not in alive:
            alive[name] = f"{name}-{version}"
            events.append(("ADDED", obj(name, alive[name], version)))
        elif draw(st.booleans()):
            events.append(("MODIFIED", obj(name, alive[name], version)))
        else:
            events.append(("DELETED", obj(name, alive.pop(name), version)))
    return events


@given(history=histories(), data=st.data())
@settings(max_examples=200)
def test_versions_never_go_back_and_the_dead_stay_dead(history, data):
    cache: Cache[dict] = Cache()
    reported: dict[str, int] = {}
    dead: set[str] = set()
    broken: list[str] = []  # what a listener raises goes to the log

    def listen(change: Change[dict]) -> None:
        uid = change.current["metadata"]["uid"]
        if change.new is None:
            dead.add(uid)
            return
        version = int(change.new["metadata"]["resourceVersion"])
        if uid in dead:
            broken.append(f"{uid} came back at {version}")
        if version <= reported.get(uid, 0):
            broken.append(f"{uid} went from {reported[uid]} to {version}")
        reported[uid] = version

    cache.listen(listen)
    # Late, doubled, and in any order: events of a watch mixed with answers to writes and reads.
    for index in data.draw(st.lists(st.integers(0, len(history) - 1), max_size=60)):
        event, body = history[index]
        if data.draw(st.booleans()) or event == "DELETED":
            cache.observe(event, body)
        else:
            cache.put(body)
    assert not broken


@given(history=histories(), cut=st.integers(0, 30), seen=st.data())
@settings(max_examples=200)
def test_a_list_and_what_follows_make_the_cache_equal_to_the_truth(history, cut, seen):
    truth: dict[str, dict] = {}
    at_cut: dict[str, dict] = {}
    cut = min(cut, len(history))
    for number, (event, body) in enumerate(history, start=1):
        if event == "DELETED":
            truth.pop(body["metadata"]["name"])
        else:
            truth[body["metadata"]["name"]] = body
        if number == cut:
            at_cut = dict(truth)

    cache: Cache[dict] = Cache()
    for event, body in history[:cut]:
        if seen.draw(st.booleans()):  # the watch before the list lost some
            cache.observe(event, body)
    cache.replace(Listing(items=list(at_cut.values()), resource_version=str(cut)))
    for event, body in history[cut:]:
        cache.observe(event, body)
    assert {item["metadata"]["name"]: item for item in cache} == truth
    assert all(cache.by_key(f"ns/{name}") == body for name, body in truth.items())


def test_a_list_older_than_our_own_write_doesnt_undo_it():
    cache: Cache[dict] = Cache()
    cache.put(obj("a", "1", 10))
    cache.put(obj("b", "2", 30))
    cache.replace(Listing(items=[obj("a", "1", 5)], resource_version="20"))
    assert cache.get("1") == obj("a", "1", 10)
    assert cache.get("2") == obj("b", "2", 30)
    cache.replace(Listing(items=[obj("a", "1", 10)], resource_version="40"))
    assert cache.get("2") is None


def test_a_name_given_anew_takes_the_old_object_out():
    cache: Cache[dict] = Cache()
    changes: list[Change[dict]] = []
    cache.put(obj("a", "old", 1))
    cache.listen(changes.append)
    cache.put(obj("a", "new", 5))
    assert [(change.old is None, change.new is None) for change in changes] == [(False, True), (True, False)]
    assert cache.by_key("ns/a") == obj("a", "new", 5)
    cache.observe("MODIFIED", obj("a", "old", 4))
    cache.observe("DELETED", obj("a", "old", 4))
    assert cache.by_key("ns/a") == obj("a", "new", 5)


def test_an_event_about_the_predecessor_of_a_name_is_not_news():
    cache: Cache[dict] = Cache()
    cache.put(obj("a", "new", 5))
    assert not cache.put(obj("a", "old", 4))
    assert len(cache) == 1


def test_indexes_follow_every_change():
    def by_owner(pod: Pod) -> list[str]:
        return [owner.uid for owner in pod.metadata.owner_references or ()]

    def pod(version: int, owner: str) -> Pod:
        owners = [OwnerReference(uid=owner)]
        return Pod(metadata=ObjectMeta(name="p", uid="1", resource_version=str(version), owner_references=owners))

    cache: Cache[Pod] = Cache(model=Pod)
    cache.put(pod(1, "job-1"))
    cache.add_index("owner", by_owner)
    assert [held.metadata.uid for held in cache.indexed("owner", "job-1")] == ["1"]
    cache.put(pod(2, "job-2"))
    assert cache.indexed("owner", "job-1") == []
    assert [held.metadata.uid for held in cache.indexed("owner", "job-2")] == ["1"]
    cache.observe("DELETED", pod(3, "job-2"))
    assert cache.indexed("owner", "job-2") == []


def test_a_deletion_that_we_asked_for_shows_until_the_server_says_more():
    cache: Cache[Pod] = Cache(model=Pod)
    cache.put(Pod(metadata=ObjectMeta(name="p", uid="1", resource_version="5")))
    held = cache.get("1")
    assert held is not None
    cache.amend(deleting(held, at="2026-01-01T00:00:00Z"))
    amended = cache.get("1")
    assert amended is not None and amended.metadata.deletion_timestamp == "2026-01-01T00:00:00Z"
    assert held.metadata.deletion_timestamp is None
    cache.put(Pod(metadata=ObjectMeta(name="p", uid="1", resource_version="6")))
    fresh = cache.get("1")
    assert fresh is not None and fresh.metadata.deletion_timestamp is None


def test_a_listener_that_fails_takes_nothing_from_the_others():
    cache: Cache[dict] = Cache()
    heard: list[str] = []

    def broken(change: Change[dict]) -> None:
        raise RuntimeError("broken")

    cache.listen(broken)
    cache.listen(lambda change: heard.append(change.current["metadata"]["uid"]))
    cache.put(obj("a", "1", 1))
    assert heard == ["1"]
    assert cache.get("1") is not None


def test_who_wrote_which_field_is_not_kept():
    cache: Cache[dict] = Cache()
    body = obj("a", "1", 1)
    body["metadata"]["managedFields"] = [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]
    cache.put(body)
    held = cache.get("1")
    assert held is not None
    assert "managedFields" not in held["metadata"]


def test_an_object_that_is_held_at_that_version_needs_no_second_copy():
    cache: Cache[dict] = Cache()
    held, again, newer, other = obj("a", "1", 1), obj("a", "1", 1), obj("a", "1", 2), obj("b", "2", 1)
    cache.put(held)
    assert cache.held_as(again) is held
    assert cache.held_as(newer) is newer
    assert cache.held_as(other) is other
