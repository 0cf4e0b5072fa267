"""Devices by claim where a cluster has features of them switched on that are off by default."""

from __future__ import annotations

import pytest

from tests.cluster.claims import gang, get, make, nodes, publish, results
from tests.cluster.components import SCHEDULER, Components
from tests.cluster.conftest import MakeControlPlane
from tests.cluster.controlplane import APISERVER, Options
from tests.cluster.processes import wait_until
from vcbatch.api.resources import DEVICECLASSES, DEVICETAINTRULES, PODGROUPS

GPU = "gpu.example.com"
GATES = (
    "--feature-gates=DRADeviceTaintRules=true,DRAListTypeAttributes=true",
    "--runtime-config=resource.k8s.io/v1beta2=true",
)


def test_rules_taint_devices_and_attributes_are_lists_where_that_is_served(
    make_control_plane: MakeControlPlane,
) -> None:
    pytest.importorskip("cel")
    plane = make_control_plane(Options(flags={APISERVER: GATES}))
    plane.add_nodes(1)
    selector = {"cel": {"expression": f"device.driver == '{GPU}'"}}
    make(plane, DEVICECLASSES, GPU, spec={"selectors": [selector]})
    of = {"gpu-0": ["pci0", "pci1"], "gpu-1": ["pci2"], "gpu-2": ["pci1", "pci2"]}
    devices = [{"name": name, "attributes": {"roots": {"strings": roots}}} for name, roots in of.items()]
    publish(plane, "gpus", GPU, "node-0", 1, devices=devices)
    taint = {"key": "example.com/repair", "value": "fan", "effect": "NoExecute"}
    make(plane, DEVICETAINTRULES, "repair", spec={"deviceSelector": {"device": "gpu-0"}, "taint": taint})
    with Components(plane) as components:
        components.start(SCHEDULER).wait_ready()
        bears = [{"key": taint["key"], "operator": "Exists", "tolerationSeconds": 3600}]
        gang(plane, "all", {"deviceClassName": GPU, "count": 3})
        wait_until(
            "why it waits is told",
            lambda: "have the taint {example.com/repair: fan}" in str(get(plane, PODGROUPS, "all").get("status")),
        )
        gang(plane, "bears", {"deviceClassName": GPU, "tolerations": bears})
        wait_until("the gang is bound", lambda: nodes(plane, "bears", 1) == ["node-0"])
        assert [result["device"] for result in results(plane, "bears-0")] == ["gpu-0"]
        chosen = {"cel": {"expression": f"device.attributes['{GPU}'].roots.includes('pci2')"}}
        match = {"matchAttribute": f"{GPU}/roots"}
        gang(plane, "near", {"deviceClassName": GPU, "count": 2, "selectors": [chosen]}, constraints=[match])
        wait_until("the gang is bound", lambda: nodes(plane, "near", 1) == ["node-0"])
        assert [result["device"] for result in results(plane, "near-0")] == ["gpu-1", "gpu-2"]
