"""The Ray example, where Ray is on the PATH."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.up import RunningVcbatch
from tests.training.jobs import type_section

pytestmark = pytest.mark.ray


@pytest.fixture
def ray(running: RunningVcbatch) -> Iterator[RunningVcbatch]:
    if shutil.which("ray") is None:
        pytest.skip("no ray on the PATH: `make test-ray` installs one")
    yield running
    running.kubectl("delete", "vcjob", "squares")


def test_a_program_runs_on_all_nodes_of_a_ray_cluster(ray: RunningVcbatch, tmp_path: Path) -> None:
    log = type_section(ray, "Ray", tmp_path)
    assert f"the sum of the squares is {sum(number * number for number in range(30))}" in log
    assert "worked out on 3 of 3 nodes" in log
