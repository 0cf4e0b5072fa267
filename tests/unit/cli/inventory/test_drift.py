"""How a stored definition differs from ours."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from vcbatch.cli.inventory.drift import drift_of, shipped

Json = dict[str, Any]
JOBS = "jobs.batch.volcano.sh"
QUEUES = "queues.scheduling.volcano.sh"


def stored(name: str) -> Json:
    return copy.deepcopy(dict(shipped()[name]))


def properties(definition: Json, *path: str) -> Json:
    at = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for name in path:
        at = at["properties"][name]
    return at["properties"]


@pytest.mark.parametrize("name", sorted(shipped()))
def test_ours_has_none_with_what_a_server_fills_in(name: str) -> None:
    definition = stored(name)
    definition["spec"]["conversion"] = {"strategy": "None"}
    definition["status"] = {"storedVersions": ["v1"]}
    assert not drift_of(definition)


def test_missing_and_extra_fields_are_named_by_their_highest_path() -> None:
    definition = stored(JOBS)
    del properties(definition, "status")["ledger"]
    properties(definition, "spec")["future"] = {"type": "object", "properties": {"deep": {"type": "string"}}}
    drift = drift_of(definition)
    assert drift.missing == ("status.ledger",)
    assert drift.extra == ("spec.future",)
    assert not drift.other


def test_types_versions_and_subresources() -> None:
    definition = stored(QUEUES)
    properties(definition, "spec")["weight"] = {"type": "string"}
    definition["spec"]["versions"][0].pop("subresources")
    definition["spec"]["scope"] = "Namespaced"
    reported = " / ".join(drift_of(definition).other)
    assert "scope is Namespaced, expected Cluster" in reported
    assert "no status subresource" in reported
    assert ".spec.weight is string, expected integer" in reported
    definition["spec"]["versions"][0]["name"] = "v1alpha2"
    assert any("v1beta1 not served" in one for one in drift_of(definition).other)


def test_a_schema_that_takes_anything_lacks_nothing() -> None:
    definition = stored(QUEUES)
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {
        "type": "object", "x-kubernetes-preserve-unknown-fields": True,
    }  # fmt: skip
    drift = drift_of(definition)
    assert not drift.missing
    assert not drift.extra


def test_other_kinds_and_nonsense_have_none() -> None:
    assert not drift_of({"metadata": {"name": "reservations.batch.volcano.sh"}})
    broken = stored(QUEUES)
    broken["spec"]["versions"] = 3
    assert drift_of(broken).other == ("version v1beta1 not served",)
