"""Server-side apply: who owns what, and what follows."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta

import pytest

from vcbatch.local.apiserver import apply, kinds
from vcbatch.local.apiserver.apierrors import StatusError
from vcbatch.local.apiserver.apply.fieldset import MalformedFields, from_json, shown, to_json

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)


@pytest.fixture(scope="module")
def entries():
    return {(entry.resource.group, entry.resource.kind): entry for entry in kinds.served()}


@pytest.fixture
def deployments(entries):
    return entries["apps", "Deployment"]


@pytest.fixture
def maps(entries):
    return entries["", "ConfigMap"]


def config_map(**data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


def deployment(*containers, **spec):
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {**spec, "template": {"spec": {"containers": list(containers)}}},
    }


class World:
    """One object that several managers apply to."""

    def __init__(self, entry):
        self.entry = entry
        self.obj = None

    def apply(self, config, manager="me", *, force=False, subresource="", now=NOW):
        if self.obj is None:
            managed = apply.created(config=config, entry=self.entry, manager=manager, now=now)
            self.obj = copy.deepcopy(config)
        else:
            applied = apply.apply(
                live=copy.deepcopy(self.obj),
                config=copy.deepcopy(config),
                entry=self.entry,
                manager=manager,
                subresource=subresource,
                force=force,
                now=now,
            )
            self.obj, managed = applied.obj, applied.managed
        self.obj["metadata"]["managedFields"] = managed
        return self.obj

    def update(self, change, manager="editor", *, now=NOW):
        old = self.obj
        obj = copy.deepcopy(old)
        change(obj)
        claims = apply.given_claims(obj, old)
        obj["metadata"]["managedFields"] = apply.updated(
            obj=obj, old=old, claims=claims, entry=self.entry, manager=manager, subresource="", now=now
        )
        self.obj = obj

    def managers(self):
        return {one["manager"]: one["fieldsV1"] for one in self.obj["metadata"]["managedFields"]}


def test_what_one_applied_another_cannot_change_without_force(maps):
    world = World(maps)
    world.apply(config_map(k="v"))
    with pytest.raises(StatusError) as refused:
        world.apply(config_map(k="other"), "you")
    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "me": .data.k'
    assert refused.value.details["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "me"', "field": ".data.k"}
    ]
    assert world.apply(config_map(k="other"), "you", force=True)["data"] == {"k": "other"}
    assert world.managers() == {"you": {"f:data": {"f:k": {}}}}


def test_the_same_value_may_be_owned_by_many(maps):
    world = World(maps)
    world.apply(config_map(k="v"))
    world.apply(config_map(k="v"), "you")
    assert set(world.managers()) == {"me", "you"}
    world.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, "me")
    assert world.obj["data"] == {"k": "v"}
    assert set(world.managers()) == {"you"}


def test_what_is_no_longer_applied_goes(maps):
    world = World(maps)
    world.apply(config_map(a="1", b="2"))
    assert world.apply(config_map(b="2"))["data"] == {"b": "2"}


def test_many_conflicts_are_listed_by_manager(maps):
    world = World(maps)
    world.apply(config_map(a="1", b="2"))
    world.apply(config_map(c="3"), "third")
    with pytest.raises(StatusError) as refused:
        world.apply(config_map(a="x", b="x", c="x"), "you")
    assert refused.value.message == (
        'Apply failed with 3 conflicts: conflicts with "me":\n- .data.a\n- .data.b\nconflicts with "third":\n- .data.c'
    )


def test_items_of_map_lists_merge_by_key_and_keep_their_places(deployments):
    world = World(deployments)
    world.apply(deployment({"name": "a", "image": "1"}, {"name": "b", "image": "1"}))
    world.apply(deployment({"name": "c", "image": "1"}, {"name": "a", "env": [{"name": "X", "value": "y"}]}), "you")
    containers = world.obj["spec"]["template"]["spec"]["containers"]
    assert [one["name"] for one in containers] == ["a", "b", "c"]
    assert containers[0] == {"name": "a", "image": "1", "env": [{"name": "X", "value": "y"}]}
    with pytest.raises(StatusError, match=r'\.spec\.template\.spec\.containers\[name="a"\]\.image'):
        world.apply(deployment({"name": "a", "image": "2"}), "you")


def test_an_item_goes_whole_unless_another_manager_has_a_part_of_it(deployments):
    world = World(deployments)
    world.apply(deployment({"name": "a", "image": "1"}, {"name": "b", "image": "1"}))
    world.update(lambda obj: obj["spec"]["template"]["spec"]["containers"][1].update(command=["x"]))
    world.apply(deployment({"name": "a", "image": "1"}))
    assert world.obj["spec"]["template"]["spec"]["containers"] == [
        {"name": "a", "image": "1"},
        {"name": "b", "command": ["x"]},
    ]


def test_ports_are_named_by_port_and_protocol(deployments):
    world = World(deployments)
    world.apply(deployment({"name": "a", "ports": [{"containerPort": 53}]}))
    world.apply(deployment({"name": "a", "ports": [{"containerPort": 53, "protocol": "UDP"}]}), "you")
    assert len(world.obj["spec"]["template"]["spec"]["containers"][0]["ports"]) == 2


def test_selectors_are_owned_as_a_whole(deployments):
    world = World(deployments)
    world.apply(deployment(selector={"matchLabels": {"a": "b"}}))
    assert world.managers()["me"]["f:spec"]["f:selector"] == {}


def test_what_an_update_changes_is_the_updaters(maps):
    world = World(maps)
    world.apply(config_map(a="1", b="2"))
    world.update(lambda obj: obj["data"].update(a="9", c="3"))
    assert world.managers() == {"me": {"f:data": {"f:b": {}}}, "editor": {"f:data": {"f:a": {}, "f:c": {}}}}
    with pytest.raises(StatusError, match=r'conflict with "editor" using v1 at 2026-01-01T00:00:00Z: \.data\.a'):
        world.apply(config_map(a="1", b="2"))


def test_an_update_that_changes_nothing_leaves_all_claims_as_they_are(maps):
    world = World(maps)
    world.apply(config_map(a="1"))
    before = copy.deepcopy(world.obj)
    world.update(lambda _obj: None, now=LATER)
    world.apply(config_map(a="1"), now=LATER)
    assert world.obj == before


def test_what_was_there_before_the_first_apply_has_a_manager_of_its_own(maps):
    world = World(maps)
    world.obj = config_map(a="1", b="2")
    with pytest.raises(StatusError, match=r'conflict with "before-first-apply" using v1: \.data\.a'):
        world.apply(config_map(a="x"))
    world.apply(config_map(a="1"))
    assert world.managers()["before-first-apply"] == {"f:data": {"f:a": {}, "f:b": {}}}


def test_the_main_resource_never_claims_the_status(deployments):
    world = World(deployments)
    world.apply({**deployment({"name": "a"}), "status": {"replicas": 1}})
    assert "f:status" not in world.managers()["me"]
    world.apply({**deployment({"name": "x"}), "status": {"replicas": 2}}, "controller", subresource="status")
    assert world.managers()["controller"] == {"f:status": {"f:replicas": {}}}


def test_a_client_may_hand_over_claims_or_give_them_up(maps):
    world = World(maps)
    world.apply(config_map(a="1"))
    sent = copy.deepcopy(world.obj)
    sent["metadata"]["managedFields"][0]["manager"] = "other"
    assert [one["manager"] for one in apply.given_claims(sent, world.obj)] == ["other"]
    sent["metadata"]["managedFields"] = []
    assert apply.given_claims(sent, world.obj) == []
    sent["metadata"]["managedFields"] = [{"operation": "Steal"}]
    assert apply.given_claims(sent, world.obj) == world.obj["metadata"]["managedFields"]
    del sent["metadata"]["managedFields"]
    assert apply.given_claims(sent, world.obj) == world.obj["metadata"]["managedFields"]


def test_field_sets_survive_their_wire_form():
    fields = {"f:a": {}, "f:l": {'k:{"name":"c"}': {".": {}, "f:name": {}}, 'v:"x"': {}}}
    assert to_json(from_json(fields)) == fields
    assert sorted(map(shown, from_json(fields))) == [".a", '.l[="x"]', '.l[name="c"]', '.l[name="c"].name']
    with pytest.raises(MalformedFields):
        from_json({"x:a": {}})
