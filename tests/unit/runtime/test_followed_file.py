"""Configuration files that are read again when they change, and what is told of those that can't be used."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.api import FakeApi
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.resources import EVENTS, LEASES
from vcbatch.runtime.configuration.followed_file import FollowedFile
from vcbatch.runtime.configuration.trouble import ConfigurationTrouble
from vcbatch.runtime.events.own_object import OwnObject
from vcbatch.runtime.events.recorder import Recorder


def _number(given: Any) -> int:
    if not isinstance(given, int):
        raise ValueError(f"{given!r} is no number")
    return given


class _World:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "conf"
        self.path.write_text("1")
        self.file = FollowedFile(self.path, _number, clock=VirtualClock())
        self.taken: list[int] = []
        self.errors: list[str] = []
        self.file.listen(lambda: self.taken.append(self.file.current))
        self.file.listen_to_errors(self.errors.append)

    def say(self, text: str) -> None:
        self.path.write_text(text)
        self.file.refresh()
        self.file.refresh()


def test_broken_yaml_is_told_in_one_line_with_its_place(tmp_path: Path) -> None:
    world = _World(tmp_path)
    world.say("a: [1\nb: 2\n")
    (error,) = world.errors
    assert error.startswith(f"{world.path}:2:2: not valid YAML: ")
    assert "\n" not in error


def test_what_can_be_used_is_taken_and_what_cant_is_told_once(tmp_path: Path) -> None:
    world = _World(tmp_path)
    world.say("2")
    world.say("two")
    world.say("three")
    assert (world.taken, world.file.current) == ([2], 2)
    assert world.errors == [f"{world.path}: 'two' is no number", f"{world.path}: 'three' is no number"]
    world.say("2")
    world.say("three")
    assert world.taken == [2, 2]
    assert world.errors[2:] == [f"{world.path}: 'three' is no number"]


def test_a_file_that_is_gone_is_told_of_once_and_read_when_it_is_back(tmp_path: Path) -> None:
    world = _World(tmp_path)
    world.path.unlink()
    for _ in range(3):
        world.file.refresh()
    assert world.errors == [f"{world.path}: No such file or directory"]
    world.say("1")
    assert (world.taken, world.file.current) == ([1], 1)
    world.path.unlink()
    world.file.refresh()
    assert len(world.errors) == 2


@pytest.mark.parametrize("lease", [True, False])
def test_a_fault_is_an_event_on_the_lease_where_there_is_one(tmp_path: Path, lease: bool) -> None:
    async def scenario() -> list[tuple[str, str, str]]:
        world, api, clock, random = _World(tmp_path), FakeApi(), VirtualClock(), SeededRandom(1)
        if lease:
            await api.create(LEASES, {"metadata": {"name": "ours"}}, namespace="system")
        recorder = Recorder(api, clock=clock, random=random, component="test")
        trouble = ConfigurationTrouble([world.file], recorder, OwnObject(api, LEASES, "system", "ours"))
        running = asyncio.create_task(trouble.run())
        world.say("two")
        await clock.sleep(1)
        await recorder.flush()
        running.cancel()
        return [(event["involvedObject"]["name"], event["reason"], event["message"]) for event in api.all(EVENTS)]

    said = f"keeping the last valid configuration: {tmp_path / 'conf'}: 'two' is no number"
    assert run(scenario()) == ([("ours", "ConfigurationRefused", said)] if lease else [])
