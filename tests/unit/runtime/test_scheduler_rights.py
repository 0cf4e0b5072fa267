"""What the chart grants the scheduler: everything that it reads and writes, and nothing that takes more away."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import yaml

from vcbatch.api.names import COMPONENTS_NAMESPACE, SCHEDULER_LEASE
from vcbatch.scheduler.model.reads import READS

ROLES = Path(__file__).resolve().parents[3] / "helm/vcbatch/files/rbac/scheduler.yaml"


def _granted() -> set[tuple[str, str, str]]:
    rules: list[dict[str, Any]] = [
        rule for document in yaml.safe_load_all(ROLES.read_text()) for rule in document.get("rules", ())
    ]
    return {right for rule in rules for right in itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"])}


def test_everybody_may_read_the_lease_on_which_the_policy_is_told_and_no_more():
    role, binding = yaml.safe_load_all((ROLES.parent / "policy-readers.yaml").read_text())
    assert role["rules"] == [
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": [SCHEDULER_LEASE],
            "verbs": ["get"],
        }
    ]
    assert {one["metadata"]["namespace"] for one in (role, binding)} == {COMPONENTS_NAMESPACE}
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert [subject["name"] for subject in binding["subjects"]] == ["system:authenticated"]


def test_every_kind_that_is_read_may_be_listed_and_watched():
    wanted = {(r.resource.group, r.resource.plural, verb) for r in READS if not r.single for verb in ("list", "watch")}
    assert wanted - _granted() == set()


def test_only_pods_and_claims_for_devices_may_be_deleted_and_only_by_name():
    deleted = {(resource, verb) for _, resource, verb in _granted() if verb.startswith("delete")}
    assert deleted == {("pods", "delete"), ("resourceclaims", "delete")}


def test_no_spec_but_that_of_claims_and_volumes_may_be_changed():
    changed = {resource for _, resource, verb in _granted() if verb in ("patch", "update")}
    assert changed == {
        "events",
        "leases",
        "nodes",
        "nodeshards/status",
        "persistentvolumeclaims",
        "persistentvolumes",
        "podgroups",
        "pods",
        "pods/status",
        "queues/status",
        "resourceclaims",
        "resourceclaims/binding",
        "resourceclaims/status",
    }
