"""What admission fills in, as a patch: nothing but what is missing, and nothing the second time."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonpatch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.corpus.corpus import cases, changed, world
from tests.support.examples import examples
from vcbatch.api import admission
from vcbatch.api.admission import Operation, Request
from vcbatch.api.defaults import json_patch
from vcbatch.api.model import Json
from vcbatch.api.resources import JOBS, PODGROUPS, PODS, QUEUES

WORLD = world()
DEFAULTED = (JOBS, QUEUES, PODGROUPS, PODS)
FILLED = [case.request for case in cases() if case.request.resource in DEFAULTED and case.request.object]
ODD = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=4) | st.just({}) | st.just([])


def places(value: Any, path: str = "") -> list[str]:
    """A pointer to everything inside."""
    below: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        below = [(str(key).replace("~", "~0").replace("/", "~1"), item) for key, item in value.items()]
    elif isinstance(value, list):
        below = [(str(index), item) for index, item in enumerate(value)]
    return [place for key, item in below for place in (f"{path}/{key}", *places(item, f"{path}/{key}"))]


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """Requests of the corpus with some places missing or odd."""
    request = draw(st.sampled_from(FILLED))
    made = copy.deepcopy(request.object or {})
    for _ in range(draw(st.integers(0, 3))):
        known = places(made)
        if known:
            made = changed(made, {draw(st.sampled_from(known)): draw(ODD | st.just("(absent)"))})
    return Request(resource=request.resource, operation=Operation.CREATE, name="x", namespace="blue", object=made)


def as_text(value: Any) -> str:
    """In which 0 isn't False."""
    return json.dumps(value, sort_keys=True)


def filled(request: Request, made: Json) -> Any:
    again = Request(**{**{key: getattr(request, key) for key in request.__slots__}, "object": made})
    return admission.mutate(again, WORLD)


@settings(max_examples=examples(300))
@given(request=requests())
def test_a_patch_is_minimal_and_settles(request: Request) -> None:
    given_object: Json = request.object or {}
    before = copy.deepcopy(given_object)
    after = filled(request, given_object)
    assert given_object == before, "what was given is left alone"
    patch = json_patch(given_object, after)
    assert jsonpatch.apply_patch(given_object, patch) == after
    assert filled(request, after) == after
    assert all(operation["op"] != "remove" for operation in patch)
    for left_out in range(len(patch)):
        fewer = patch[:left_out] + patch[left_out + 1 :]
        assert as_text(jsonpatch.apply_patch(given_object, fewer)) != as_text(after), patch[left_out]
