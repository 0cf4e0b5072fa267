"""Names of resources that are probably misspelt."""

from __future__ import annotations

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcbatch.api.job import Job
from vcbatch.api.queue import Queue
from vcbatch.api.resource_names import doubt
from vcbatch.api.validate.warnings import queue_warnings, template_warnings
from vcbatch.cli.resources.queue.actions import AmountsType

GOOD = ("cpu", "memory", "ephemeral-storage", "pods", "hugepages-2Mi", "attachable-volumes-csi-x", "nvidia.com/gpu",
        "rdma/hca_shared_devices_a", "deviceclass/gpu.example.com", "memory.deviceclass/gpu.example.com", "amd.com/gpu",
        "count/jobs.batch", "example.com/gpus", "nvidia.com/mig-1g.5gb")  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_names_that_nodes_offer_are_not_doubted(name: str) -> None:
    assert doubt(name) == ""


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("cpus", "cpu"), ("CPU", "cpu"), ("cores", "cpu"), ("mem", "memory"), ("Memory", "memory"), ("ram", "memory"),
        ("memroy", "memory"), ("gpu", "nvidia.com/gpu"), ("gpus", "nvidia.com/gpu"), ("nvidia/gpu", "nvidia.com/gpu"),
        ("nvidia.com/gpus", "nvidia.com/gpu"), ("amd/gpu", "amd.com/gpu"), ("pod", "pods"),
    ],
)  # fmt: skip
def test_a_misspelt_name_is_doubted_with_what_is_meant(name: str, meant: str) -> None:
    assert f"did you mean {meant}?" in doubt(name)
    assert doubt(meant) == ""
    queue = Queue.parse({"metadata": {"name": "q"}, "spec": {
        "capability": {name: "1"}, "deserved": {name: "1"}, "guarantee": {"resource": {name: "1"}}}})  # fmt: skip
    said = [line.partition(":")[0] for line in queue_warnings(queue)]
    assert said == ["spec.capability", "spec.deserved", "spec.guarantee.resource"]
    pod = {"containers": [{"name": "c", "image": "i", "resources": {"limits": {name: "1"}, "requests": {name: "1"}}}]}
    job = Job.parse({"metadata": {"name": "j"}, "spec": {"tasks": [{"name": "t", "template": {"spec": pod}}]}})
    about = [line for line in template_warnings(job.spec) if "resources" in line]
    assert about == [f"spec.tasks[0].template.spec.containers[0].resources.requests: {doubt(name)}"]
    with pytest.raises(click.BadParameter, match="did you mean"):
        AmountsType().convert(f"{name}=1", None, None)


def test_a_name_that_is_like_none_needs_a_domain() -> None:
    assert "needs a domain" in doubt("widgets")
    with pytest.raises(click.BadParameter, match="duplicate resource cpu"):
        AmountsType().convert("cpu=1,cpu=2", None, None)


@given(st.text(max_size=80))
def test_what_is_meant_is_never_doubted_itself(name: str) -> None:
    said = doubt(name)
    if "did you mean " in said:
        assert doubt(said.rpartition("did you mean ")[2].removesuffix("?")) == ""
