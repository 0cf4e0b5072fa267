"""Server-side apply keeps its promises whoever applies what, in whatever order."""

from __future__ import annotations

import copy
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from vcbatch.local.apiserver import apply, kinds
from vcbatch.local.apiserver.apierrors import StatusError
from vcbatch.local.apiserver.apply.fieldset import from_json, to_json
from vcbatch.local.apiserver.apply.merge import leaves
from vcbatch.local.apiserver.apply.shapes import shape_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ENTRY = next(entry for entry in kinds.served() if entry.resource.kind == "Deployment")
SHAPE = shape_of(ENTRY)

NAMES = st.sampled_from(["a", "b", "c"])
TEXTS = st.sampled_from(["x", "y"])


def named(**fields):
    return st.lists(
        st.fixed_dictionaries({"name": NAMES}, optional=fields), max_size=3, unique_by=lambda item: item["name"]
    )


CONTAINERS = named(
    image=TEXTS,
    command=st.lists(TEXTS, min_size=1, max_size=2),
    env=named(value=TEXTS),
    ports=st.lists(
        st.fixed_dictionaries({"containerPort": st.integers(1, 2)}, optional={"name": TEXTS}),
        max_size=2,
        unique_by=lambda port: port["containerPort"],
    ),
)
CONFIGS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": st.just("d")},
            optional={
                "labels": st.dictionaries(NAMES, TEXTS, max_size=2),
                "finalizers": st.lists(TEXTS, max_size=2, unique=True),
            },
        ),
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "replicas": st.integers(0, 2),
                "selector": st.fixed_dictionaries({"matchLabels": st.dictionaries(NAMES, TEXTS, max_size=2)}),
                "template": st.fixed_dictionaries({"spec": st.fixed_dictionaries({"containers": CONTAINERS})}),
            },
        ),
    }
).map(lambda config: {"apiVersion": "apps/v1", "kind": "Deployment", **config})
STEPS = st.lists(st.tuples(st.sampled_from(["me", "you"]), CONFIGS, st.booleans()), min_size=1, max_size=5)


def applied_to(live, config, manager, *, force):
    result = apply.apply(
        live=copy.deepcopy(live),
        config=copy.deepcopy(config),
        entry=ENTRY,
        manager=manager,
        subresource="",
        force=force,
        now=NOW,
    )
    result.obj["metadata"]["managedFields"] = result.managed
    return result.obj


def own(config):
    return {
        path: value
        for path, value in leaves(config, SHAPE).items()
        if path[0] == "f:spec" or path[:2] in (("f:metadata", "f:labels"), ("f:metadata", "f:finalizers"))
    }


@settings(max_examples=examples(150))
@given(STEPS)
def test_after_an_apply_the_object_says_what_was_applied(steps):
    live = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    for manager, config, force in steps:
        before = copy.deepcopy(live)
        try:
            live = applied_to(live, config, manager, force=force)
        except StatusError as refused:
            assert refused.code == 409
            assert not force
            assert live == before
            continue
        now = leaves(live, SHAPE)
        for path, value in own(config).items():
            if path in now:
                assert now[path] == value
            else:
                # An empty map or list that was applied onto a filled one owns nothing of what others put there.
                assert value in ({}, [])
        assert applied_to(live, config, manager, force=False) == live


@settings(max_examples=examples(100))
@given(CONFIGS, CONFIGS)
def test_what_only_this_manager_applied_goes_with_its_configuration(first, second):
    live = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    live = applied_to(live, first, "me", force=False)
    live = applied_to(live, second, "me", force=False)
    gone = {path for path, value in own(first).items() if value not in ({}, [])} - set(own(second))
    assert not gone & set(leaves(live, SHAPE))


@settings(max_examples=examples(100))
@given(CONFIGS)
def test_field_sets_survive_their_wire_form(config):
    fields = frozenset(leaves(config, SHAPE))
    assert from_json(to_json(fields)) == fields
