"""What each program needs is what the shipped roles grant, and rules are read as RBAC reads them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from vcbatch.api.names import SCHEDULER_LEASE
from vcbatch.api.program_rights import CONTROLLERS, SCHEDULER, WEBHOOKS, Feature, Right, Rights, lacking, needed

FILES = Path(__file__).resolve().parents[3] / "helm/vcbatch/files"
PROGRAMS = {"controllers": CONTROLLERS, "scheduler": SCHEDULER, "webhooks": WEBHOOKS}


def rules(path: Path, account: str) -> Iterator[dict[str, Any]]:
    """The rules of the roles in that file that are bound to that account."""
    documents = list(yaml.safe_load_all(path.read_text()))
    bound = {
        (document["roleRef"]["kind"], document["roleRef"]["name"])
        for document in documents
        if document["kind"].endswith("Binding") and account in [each["name"] for each in document["subjects"]]
    }
    for document in documents:
        if (document["kind"], document["metadata"]["name"]) in bound:
            yield from document["rules"]


def granted(program: str) -> set[Right]:
    return {
        Right(group, resource, verb, name)
        for rule in rules(FILES / f"rbac/{program}.yaml", f"vcbatch-{program}")
        for group, resource, verb, name in itertools.product(
            rule["apiGroups"], rule["resources"], rule["verbs"], rule.get("resourceNames", [""])
        )
    }


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_shipped_roles_grant_what_is_needed_and_nothing_else(program: str) -> None:
    wanted = set(needed(PROGRAMS[program], list(Feature)))
    assert (granted(program) - wanted, wanted - granted(program)) == (set(), set())


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_shipped_rules_leave_nothing_missing(program: str) -> None:
    path = FILES / f"rbac/{program}.yaml"
    found = list(rules(path, f"vcbatch-{program}"))
    wanted = needed(PROGRAMS[program], list(Feature))
    assert lacking(wanted, found) == []
    for rule in found:
        assert lacking(wanted, [other for other in found if other is not rule]), f"nobody misses {rule}"


def test_what_a_feature_needs_is_needed_only_where_it_is_on() -> None:
    evicts = Right("", "pods", "delete")
    assert evicts not in needed(SCHEDULER, [])
    assert evicts in needed(SCHEDULER, [Feature.EVICTION])
    lease = Right("coordination.k8s.io", "leases", "get", "other")
    assert lease in needed(SCHEDULER, [Feature.ELECTION], renamed={SCHEDULER_LEASE: "other"})


def rule(**parts: list[str]) -> dict[str, list[str]]:
    return {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], **parts}


@pytest.mark.parametrize(
    ("given", "right", "grants"),
    [
        (rule(), Right("", "pods", "get"), True),
        (rule(), Right("", "pods", "list"), False),
        (rule(), Right("apps", "pods", "get"), False),
        (rule(), Right("", "pods/status", "get"), False),
        (rule(verbs=["*"]), Right("", "pods", "list"), True),
        (rule(apiGroups=["*"]), Right("apps", "pods", "get"), True),
        (rule(resources=["*"]), Right("", "pods/status", "get"), True),
        (rule(resources=["*/status"]), Right("", "pods/status", "get"), True),
        (rule(resources=["*/status"]), Right("", "pods", "get"), False),
        (rule(resources=["pods/*"]), Right("", "pods/status", "get"), False),
        (rule(resourceNames=["a"]), Right("", "pods", "get"), False),
        (rule(resourceNames=["a"]), Right("", "pods", "get", "a"), True),
        (rule(resourceNames=["a"]), Right("", "pods", "get", "b"), False),
        (rule(), Right("", "pods", "get", "a"), True),
        ({}, Right("", "pods", "get"), False),
        ({"apiGroups": None, "resources": 3, "verbs": [{}]}, Right("", "pods", "get"), False),
        ("*", Right("", "pods", "get"), False),
    ],
)
def test_a_rule_grants_as_in_rbac(given: Any, right: Right, grants: bool) -> None:
    assert (lacking([right], [given]) == []) is grants


def test_a_right_is_named_as_kubectl_names_it() -> None:
    assert str(Right("", "pods/status", "patch")) == "patch pods/status"
    assert str(Right("coordination.k8s.io", "leases", "get", "x")) == "get leases.coordination.k8s.io x"


def test_every_rule_has_something_to_grant() -> None:
    every: list[Rights] = [each for program in PROGRAMS.values() for each in program]
    assert all(each.resources and each.verbs for each in every)
