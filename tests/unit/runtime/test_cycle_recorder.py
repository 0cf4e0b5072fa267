"""Cycles on disk: whatever the scheduler was told, replayed it decides the same, from any file of the ring."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.cli.whatif.recording_files import read_recording
from vcbatch.runtime.scheduling.cycle_recorder import CycleRecorder, RecordedScheduler, RingSize
from vcbatch.scheduler import Policy, parse_policy
from vcbatch.scheduler.model.share import Ring, Share
from vcbatch.scheduler.simulation.recording import VERSION, Recording, Settings, replay

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def recorded(folder: Path, *, files: int = 100, cycles: int = 4, policy: Policy | None = None) -> Cluster:
    made = Cluster(policy)
    recorder = CycleRecorder(folder, Settings(taken=NOW), ring=RingSize(files=files, cycles=cycles))
    made.scheduler = RecordedScheduler(policy, recorder)
    made.queue("default")
    return made


def lived(made: Cluster, *, seed: int, steps: int = 24) -> None:
    """Gangs that come, run and go on nodes that come and go, some binds failing."""
    dice = random.Random(seed)
    for number in range(3):
        made.node(f"n{number}", cpu="8")
    for step in range(steps):
        match dice.randrange(5):
            case 0 | 1:
                made.gang(f"g{step}", dice.randint(1, 5), phase="Pending", cpu=dice.choice(["1", "2", "3"]))
            case 2:
                made.node(f"n{dice.randrange(5)}", cpu=dice.choice(["4", "8"]))
            case 3 if made.pods:
                made.delete(dice.choice(sorted(made.pods)))
            case _:
                uids = sorted(uid for uid, task in made.scheduler._state.tasks.items() if task.node)
                if uids:
                    made.scheduler.bind_failed(dice.choice(uids), "no")
        made.cycle()


def files(folder: Path) -> list[Recording]:
    return [read_recording(path) for path in sorted(folder.glob("*.gz"))]


@pytest.mark.parametrize("seed", range(6))
def test_every_recorded_cycle_is_decided_again_as_it_was(tmp_path: Path, seed: int):
    made = recorded(tmp_path)
    lived(made, seed=seed)
    found = files(tmp_path)
    assert sum(one.cycles for one in found) == 24
    assert len(found) == 6
    bound = 0
    for one in found:
        for done in replay(one, one.scheduler(one.policy())):
            assert done.same, (one.settings.cycles, done.number)
            bound += len(done.result.binds)
    assert bound > 5


def test_a_file_of_this_version_is_decided_again_by_later_builds():
    """Where this fails, and has to: count `VERSION` up, and keep a file of the new one in place of this."""
    found = read_recording(Path(__file__).with_name(f"recording-{VERSION}.jsonl"))
    reported = [
        (done.same, [bind.name for bind in done.result.binds])
        for done in replay(found, found.scheduler(found.policy()))
    ]
    assert reported == [(True, ["a-worker-0", "a-worker-1"]), (True, [])]


def test_another_policy_is_found_out(tmp_path: Path):
    made = recorded(tmp_path)
    made.node("n1", cpu="8")
    made.node("n2", cpu="8")
    made.gang("g", 2, phase="Pending")
    made.cycle()
    [one] = files(tmp_path)
    other = parse_policy("actions: enqueue\ntiers: [{plugins: [{name: gang}]}]")
    assert not all(done.same for done in replay(one, one.scheduler(other)))
    assert all(done.same for done in replay(one, one.scheduler(one.policy())))


def test_the_ring_keeps_the_last_files(tmp_path: Path):
    made = recorded(tmp_path, files=2, cycles=3)
    lived(made, seed=1)
    found = files(tmp_path)
    assert [one.settings.cycles for one in found] == [18, 21]


def test_a_new_policy_begins_a_new_file(tmp_path: Path):
    made = recorded(tmp_path)
    made.node("n1", cpu="8")
    made.gang("g", 1)
    made.cycle()
    made.scheduler.set_policy(parse_policy("actions: allocate\ntiers: [{plugins: [{name: gang}]}]"))
    made.gang("h", 1)
    made.cycle()
    first, second = files(tmp_path)
    assert first.settings.policy is None
    assert second.policy().actions == ("allocate",)
    for one in (first, second):
        assert all(done.same for done in replay(one, one.scheduler(one.policy())))


def test_environments_are_not_written_down(tmp_path: Path):
    made = recorded(tmp_path)
    note = {"kubectl.kubernetes.io/last-applied-configuration": '{"env":"hunter2"}', "kept": "yes"}
    made.gang("g", 1, annotations=note, pod={"env": [{"name": "PASSWORD", "value": "hunter2"}]})
    made.cycle()
    [one] = files(tmp_path)
    assert "hunter2" not in str(one)
    [group] = one.lists["podGroups"]
    assert group["metadata"]["annotations"] == {"kept": "yes"}


def test_a_disk_that_cannot_be_written_ends_the_recording_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "file").write_text("")
    made = recorded(tmp_path / "file" / "folder")
    made.node("n1", cpu="8")
    made.gang("g", 1)
    assert len(made.cycle().binds) == 1
    made.gang("h", 1)
    assert len(made.cycle().binds) == 1
    assert caplog.text.count("recording of cycles stopped") == 1


def test_a_share_by_hashing_cannot_be_recorded(tmp_path: Path):
    share = Share(ring=Ring(["a", "b"]), instance="a")
    with pytest.raises(ValueError, match="one of several by hashing"):
        CycleRecorder(tmp_path, Settings(taken=NOW, share=share))
