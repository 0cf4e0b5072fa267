"""Probes that can never hold are stored, as by Volcano, and told of."""

from __future__ import annotations

from typing import Any

import pytest

from vcbatch.api.jobflow import JobFlow
from vcbatch.api.validate import jobflow_warnings

Json = dict[str, Any]
PHASES = "Pending, Running, Succeeded, Failed, Unknown"
AT = "spec.flows[1].dependsOn.probe"


@pytest.mark.parametrize(
    ("probe", "reported"),
    [
        ({"httpGetList": [{"path": "/"}]}, f"{AT}.httpGetList[0].port: nothing listens at port 0"),
        ({"tcpSocketList": [{"port": 1}, {"port": 0}]}, f"{AT}.tcpSocketList[1].port: nothing listens at port 0"),
        (
            {"taskStatusList": [{"taskName": "w", "phase": "Done"}]},
            f"{AT}.taskStatusList[0].phase: 'Done' is no phase of pods, want one of {PHASES}",
        ),
        ({"taskStatusList": [{"taskName": "w", "phase": "Running"}], "httpGetList": [{"port": 80}]}, ""),
    ],
)
def test_a_probe_that_never_holds(probe: Json, reported: str) -> None:
    assert _warnings({"targets": ["a"], "probe": probe}) == ([reported] if reported else [])


def test_a_probe_of_nothing() -> None:
    assert _warnings({"probe": {}}) == [f"{AT}: there are no targets to probe, so it has no effect"]


def _warnings(depends: Json) -> list[str]:
    flow = JobFlow.parse({"spec": {"flows": [{"name": "a"}, {"name": "b", "dependsOn": depends}]}})
    found = list(jobflow_warnings(flow))
    assert all(len(warning) <= 256 for warning in found)
    return found
