"""Whatever well-typed object a client sends, each built-in kind stores or refuses it, and never fails."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.virtual_time import run
from tests.unit.apiserver.core.servers import Answer, server
from tests.unit.apiserver.kinds.support import TABLE
from vcbatch.local.apiserver import kinds
from vcbatch.local.apiserver.registry import Served
from vcbatch.local.apiserver.schema.types import Field, Struct, kind_struct, structs

Json = dict[str, Any]

_MOST_DEEP = 7
_STRINGS = ("", "a", "A_b", "x y", "None", "Exists", "In", "RollingUpdate", "10%", "../x", "1.2.3.4", "kubernetes.io/x")
_NUMBERS = (-1, 0, 1, 80, 70000)
_SCALARS: dict[str, tuple[Any, ...]] = {
    "string": _STRINGS,
    "bool": (True, False),
    "bytes": ("", "eA=="),
    "Quantity": ("0", "1", "-1", "100m", "1Gi", 2),
    "IntOrString": (0, 1, -1, "50%", "x"),
    "Time": ("2026-01-01T00:00:00Z",),
    "MicroTime": ("2026-01-01T00:00:00.000000Z",),
    "float64": (0.5,),
}
_POD: Json = {"containers": [{"name": "c", "image": "i"}]}
_TEMPLATE: Json = {"metadata": {"labels": {"a": "b"}}, "spec": _POD}
_SOUND: dict[str, Json] = {
    "pods": _POD,
    "services": {"ports": [{"port": 80}]},
    "deployments": {"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE},
    "statefulsets": {"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE},
    "jobs": {"template": {"spec": {**_POD, "restartPolicy": "Never"}}},
    "persistentvolumeclaims": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
"""What is made where chance made nothing that could be changed."""
STORED = [entry for entry in kinds.served() if "get" in entry.verbs and entry.storage is None]


class _Maker:
    """Makes well-typed values from one seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def struct(self, type_: Struct, depth: int = 0) -> Json:
        share = 0.5 if depth < 3 else 0.2
        chosen = [field for field in type_.fields.values() if self._random.random() < share]
        made = {field.name: self._field(field, depth) for field in chosen if field.name != "metadata"}
        return {name: value for name, value in made.items() if value is not ...}

    def _field(self, field: Field, depth: int) -> Any:
        if self._random.random() < 0.05:
            return None
        match field.container:
            case "list":
                return [self._value(field.type, depth) for _ in range(self._random.randint(0, 2))]
            case "map":
                return {self._random.choice(_STRINGS): self._value(field.type, depth)}
            case _:
                return self._value(field.type, depth)

    def _value(self, type_: str, depth: int) -> Any:
        known = structs().get(type_)
        if known is not None:
            return self.struct(known, depth + 1) if depth < _MOST_DEEP else {}
        if type_ in _SCALARS:
            return self._random.choice(_SCALARS[type_])
        if type_.startswith(("int", "uint")):
            return self._random.choice(_NUMBERS) % (256 if type_ == "uint8" else 2**31)
        return [] if type_ in ("Values", "Verbs") else {}


async def _play(entry: Served, seed: int) -> list[Answer]:
    """Create, change twice, look at it as a table, delete."""
    maker = _Maker(seed)
    known = kind_struct(api_version=entry.resource.api_version, kind=entry.resource.kind)
    assert known is not None
    namespace = "default" if entry.resource.namespaced else None
    path = entry.resource.path(namespace=namespace)

    def make() -> Json:
        resource = entry.resource
        obj = maker.struct(known)
        return {**obj, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "x"}}

    answers: list[Answer] = []
    async with server() as client:
        answers.append(await client.post(path, make()))
        if answers[0].code != 201 and entry.resource.plural in _SOUND:
            answers.append(await client.post(path, {"metadata": {"name": "x"}, "spec": _SOUND[entry.resource.plural]}))
        targets = ("", "/status") if "status" in entry.subresources else ("",)
        answers += [await client.merge(f"{path}/x{target}", {**make(), "metadata": {}}) for target in targets]
        answers.append(await client.get(path, headers=TABLE))
        answers.append(await client.delete(f"{path}/x"))
    return answers


@pytest.mark.parametrize("entry", STORED, ids=[entry.resource.plural for entry in STORED])
@settings(max_examples=examples(4))
@given(seed=st.integers(min_value=0, max_value=2**32))
def test_no_object_makes_a_kind_fail(entry: Served, seed: int) -> None:
    for answer in run(_play(entry, seed)):
        assert answer.code < 500, answer.body
