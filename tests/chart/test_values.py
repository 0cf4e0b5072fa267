"""What is wrong with values is refused before anything is sent to a cluster: by the schema with the path, by the
templates with what to do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chart.helm import render

pytestmark = pytest.mark.usefixtures("helm")


def _refusal(values: dict[str, Any], *flags: str) -> str:
    made = render(values, *flags)
    assert made.error, "it was rendered"
    assert not made.text
    return made.error


@pytest.mark.parametrize(
    ("values", "path", "why"),
    [
        ({"replica": 1}, "''", "additional properties 'replica' not allowed"),
        ({"controllers": {"replicas": 0}}, "'/controllers/replicas'", "minimum"),
        ({"controllers": {"replicas": "two"}}, "'/controllers/replicas'", "want integer"),
        ({"controllers": {"replica": 2}}, "'/controllers'", "'replica' not allowed"),
        ({"controllers": {"resources": {"request": {}}}}, "'/controllers/resources'", "'request' not allowed"),
        ({"controllers": {"extraArgs": "--x"}}, "'/controllers/extraArgs'", "want array"),
        ({"controllers": {"podLabels": {"a": 1}}}, "'/controllers/podLabels/a'", "want string"),
        ({"scheduler": {"logLevel": "loud"}}, "'/scheduler/logLevel'", "must be one of"),
        ({"scheduler": {"podDisruptionBudget": {"maxUnavailable": 0}}}, "maxUnavailable'", "minimum"),
        ({"schedulers": []}, "'/schedulers'", "minItems"),
        ({"schedulers": [{}]}, "'/schedulers/0'", "missing property 'name'"),
        ({"schedulers": [{"name": "Mine"}]}, "'/schedulers/0/name'", "does not match pattern"),
        ({"schedulers": [{"name": "a", "polcy": ""}]}, "'/schedulers/0'", "'polcy' not allowed"),
        ({"schedulers": [{"name": "a", "sharding": {"mode": "firm"}}]}, "'/schedulers/0/sharding/mode'", "one of"),
        ({"schedulers": [{"name": "a", "policyConfigMap": {}}]}, "policyConfigMap'", "missing property 'name'"),
        ({"image": {"digest": "sha256:abc"}}, "'/image/digest'", "does not match pattern"),
        ({"image": {"tag": "a b"}}, "'/image/tag'", "does not match pattern"),
        ({"image": {"registry": "https://r.example"}}, "'/image/registry'", "does not match pattern"),
        ({"image": {"pullSecrets": [{"nam": "x"}]}}, "'/image/pullSecrets/0'", ""),
        ({"global": {"imageRegistry": 5}}, "'/global/imageRegistry'", "want string"),
        ({"admission": {"mode": "webhook"}}, "'/admission/mode'", "must be one of"),
        ({"admission": {"certificates": "certmanager"}}, "'/admission/certificates'", "must be one of"),
        ({"admission": {"maxQueueDepth": 65}}, "'/admission/maxQueueDepth'", "maximum"),
        ({"webhooks": {"port": 443}}, "'/webhooks/port'", "minimum"),
        ({"webhooks": {"service": {"ipFamilies": ["IPv5"]}}}, "'/webhooks/service/ipFamilies/0'", "must be one of"),
        ({"leaderElection": {"leaseDuration": "15"}}, "'/leaderElection/leaseDuration'", "does not match pattern"),
        ({"networkPolicy": {"apiServerPorts": []}}, "'/networkPolicy/apiServerPorts'", "minItems"),
        ({"featureGates": {"Unknown": True}}, "'/featureGates'", "'Unknown' not allowed"),
        ({"rbac": {"sshNamespaces": ["a b"]}}, "'/rbac/sshNamespaces/0'", "does not match pattern"),
        ({"tests": {"pods": 0}}, "'/tests/pods'", "minimum"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_the_schema_refuses_with_the_path(values: dict[str, Any], path: str, why: str) -> None:
    said = _refusal(values)
    assert "values don't meet the specifications of the schema" in said
    assert [line for line in said.splitlines() if path in line and why in line], said


def test_values_of_umbrella_charts_are_taken() -> None:
    assert not render({"enabled": True, "global": {"storageClass": "fast"}}).error


@pytest.mark.parametrize(
    ("values", "flags", "said"),
    [
        ({"schedulers": [{"name": "a"}, {"name": "a"}]}, (), 'schedulers[1].name: "a" is the name of another'),
        ({"schedulers": [{"name": "a"}, {"name": "b", "lease": "vcbatch-scheduler-a"}]}, (), "schedulers[1].lease"),
        ({"schedulers": [{"name": "a", "lease": "vcbatch-controllers"}]}, (), "schedulers[0].lease"),
        (
            {"schedulers": [{"name": "a", "policy": "actions: allocate", "policyConfigMap": {"name": "x"}}]},
            (),
            "schedulers[0]: policy and policyConfigMap exclude each other",
        ),
        ({"admission": {"certificates": "secret"}}, (), "needs admission.secretName"),
        ({"admission": {"certificates": "cert-manager"}}, (), "Install cert-manager first"),
        ({"admission": {"mode": "policies"}}, ("--kube-version", "1.35.0"), "Set admission.mode=webhooks"),
        ({}, ("--kube-version", "1.33.9"), "chart requires kubeVersion: >=1.34.0-0"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_what_can_not_work_is_refused_with_what_to_do(
    values: dict[str, Any], flags: tuple[str, ...], said: str
) -> None:
    assert said in _refusal(values, *flags)


def test_values_of_a_way_that_is_not_gone_are_not_judged() -> None:
    assert not render({"admission": {"mode": "none", "certificates": "cert-manager"}}).error
