"""Plugins that users bring: the one of the documentation, and those that don't behave."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support.admission_world import World as Cluster
from tests.support.admission_world import queue
from tests.support.job_world import World, job_object
from vcbatch.api.flags import PLUGIN_FLAGS
from vcbatch.api.job import Job
from vcbatch.api.validate.job import job_errors
from vcbatch.api.validate.plugin_warnings import argument_warnings
from vcbatch.cli.components import job_plugins
from vcbatch.core.job.plugins import KNOWN, register

PAGE = Path(__file__).resolve().parents[4] / "docs" / "job-plugins.md"
MODULE = "my_package.plugins"


@pytest.fixture(autouse=True)
def only_for_this_test() -> Iterator[None]:
    """What is registered is forgotten afterwards."""
    before = dict(KNOWN), dict(PLUGIN_FLAGS)
    yield
    for registry, entries in zip((KNOWN, PLUGIN_FLAGS), before, strict=True):
        registry.clear()
        registry.update(entries)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The page's code as an installed module, and its entry point."""
    text = PAGE.read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    line = re.search(r'^(\w+) = "(\S+)"$', text, re.MULTILINE)
    assert line is not None
    module = ModuleType(MODULE)
    exec("\n".join(code), module.__dict__)
    monkeypatch.setitem(sys.modules, MODULE, module)
    entries = [
        EntryPoint(line[1], line[2], job_plugins.GROUP),
        EntryPoint("broken", "nowhere:Nothing", job_plugins.GROUP),
        EntryPoint("odd", f"{MODULE}:__name__", job_plugins.GROUP),
    ]
    monkeypatch.setattr(job_plugins, "entry_points", lambda group: [one for one in entries if one.group == group])
    return module


def env_of_first_pod(plugins: dict[str, list[str]]) -> dict[str, str]:
    world = World()
    world.submit(job_object(plugins=plugins))
    world.run(until=lambda: world.phase() == "Running")
    pod: Any = world.pods()["j-w-0"]
    return {entry["name"]: entry["value"] for entry in pod["spec"]["containers"][0]["env"]}


def test_the_plugin_of_the_page_works(installed: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    assert job_plugins.add_job_plugins() == ["nccl"]
    assert {record.args[0] for record in caplog.records if isinstance(record.args, tuple)} == {"broken", "odd"}
    assert env_of_first_pod({"nccl": ["--interface=ib0", "--debug"]}) == {
        "NCCL_SOCKET_IFNAME": "ib0",
        "NCCL_DEBUG": "INFO",
    }


def test_admission_knows_its_arguments(installed: ModuleType) -> None:
    def errors(arguments: list[str]) -> list[str]:
        job = Job.parse(job_object(plugins={"nccl": arguments}))
        errors = job_errors(job, Cluster(known=[queue("root"), queue("default")]))
        refused = [error.message for error in errors if error.field == "spec.plugins[nccl]"]
        return refused or list(argument_warnings(job.spec, "spec"))

    assert "unable to find job plugin: nccl" in errors([])[0]
    job_plugins.add_job_plugins()
    assert errors(["--debug"]) == []
    assert errors(["--speed=1"]) == [
        "spec.plugins[nccl]: flag speed isn't known, want one of debug, interface, topology; it is ignored"
    ]


def test_what_a_plugin_raises_names_it(installed: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    job_plugins.add_job_plugins()

    def fail(*_: object, **__: object) -> None:
        raise KeyError("template")

    monkeypatch.setattr(installed.NcclPlugin, "change_pod", fail)
    world = World()
    world.submit(job_object(plugins={"nccl": []}))
    world.run(until=lambda: bool(world.events))
    assert [event.message for event in world.events] == ["task w: plugin nccl failed: KeyError: 'template'"]
    assert not world.pods()


@pytest.mark.parametrize(
    ("name", "flags"), [("svc", {}), ("Big", {}), ("a_b", {}), ("", {}), ("fine", {"x": None}), ("fine", {"x": 1.5})]
)
def test_what_can_t_be_registered(name: str, flags: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"job plugin"):
        register(name, flags=flags, make=KNOWN["env"])
    assert "fine" not in KNOWN
