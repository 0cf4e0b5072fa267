"""`vcbatch replay`: replay recorded cycles, or run a what-if simulation on a changed cluster state."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from vcbatch.api.messages import read_wait
from vcbatch.api.resources import PODS
from vcbatch.api.timestamps import format_time
from vcbatch.cli.base.output import CliError, note, say
from vcbatch.cli.files.documents import documents
from vcbatch.cli.files.plugin_files import extensions_option
from vcbatch.cli.files.policy_file import read_policy
from vcbatch.cli.files.source import Origin
from vcbatch.cli.whatif.outcome_text import text_of
from vcbatch.cli.whatif.recording_files import read_recording
from vcbatch.cli.whatif.without import remove
from vcbatch.cli.whatif.world_files import Collected, completed
from vcbatch.scheduler import PolicyError
from vcbatch.scheduler.framework.policy import Extensions, Policy
from vcbatch.scheduler.simulation import Outcome, Simulation, World, WorldError
from vcbatch.scheduler.simulation.recording import Recording, Replayed, replay

Json = Mapping[str, Any]
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_ROUNDS = 10


@click.command("replay")
@click.argument("file", type=_FILE)
@click.option(
    "--what-if", "added", multiple=True, type=_FILE, metavar="FILE",
    help="Add or replace the objects in FILE; may be repeated.",
)  # fmt: skip
@click.option(
    "--without", "removed", multiple=True, metavar="KIND/[NAMESPACE/]NAME",
    help="Remove an object: a job or PodGroup with its pods, or a node, whose pods become pending; may be repeated.",
)  # fmt: skip
@click.option(
    "--policy", "policy_file", type=_FILE, default=None, metavar="FILE", help="Scheduler configuration to simulate."
)
@extensions_option
@click.option(
    "--rounds", type=click.IntRange(1, 10_000), default=_ROUNDS, show_default=True, metavar="N",
    help="Maximum number of simulated cycles.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
def command(
    file: Path,
    added: tuple[Path, ...],
    removed: tuple[str, ...],
    policy_file: Path | None,
    extensions: Extensions,
    rounds: int,
    output: str,
) -> int:
    """Replay the cycles recorded in FILE, or simulate changes to the cluster in it.

    FILE is written by `vcbatch snapshot`, or by `vcbatch scheduler --record-cycles DIR`. Recorded cycles are computed
    again and compared with the recorded decisions; exits 1 if one differs.

    With --what-if, --without or --policy the final state in FILE is scheduled twice, unchanged and changed, and the
    difference is printed.
    """
    recording = read_recording(file)
    changed = bool(added or removed or policy_file)
    try:
        if recording.cycles and not changed:
            return _verify(recording, extensions, output)
        now, lists = _end(recording, extensions)
        trial = _Trial(recording=recording, now=now, rounds=rounds)
        before = trial.run(lists, recording.policy(extensions))
        if not changed:
            say(json.dumps({"name": file.name, **before.as_json()}) if output == "json" else text_of(before))
            return 0
        policy = recording.policy(extensions)
        if policy_file is not None:
            policy = read_policy(policy_file, extensions=extensions)
        name = recording.settings.scheduler_names[0]
        after = trial.run(_changed(lists, added, removed, scheduler_name=name, now=now), policy)
    except (WorldError, PolicyError) as error:
        raise CliError(f"{file}: {error}") from error
    say(json.dumps(_difference(before, after)) if output == "json" else _difference_text(before, after))
    return 0


# Recorded cycles -----------------------------------------------------------------------------------------------------


def _verify(recording: Recording, extensions: Extensions, output: str) -> int:
    scheduler = recording.scheduler(recording.policy(extensions))
    differing = 0
    for done in replay(recording, scheduler):
        differing += not done.same
        say(json.dumps(_cycle_json(done)) if output == "json" else _cycle_text(done))
    count = recording.cycles
    note(f"{count} cycle{'' if count == 1 else 's'} replayed, {differing or 'none'} with different decisions")
    return 1 if differing else 0


def _cycle_text(done: Replayed) -> str:
    result = done.result
    counts = [(len(result.binds), "bound"), (len(result.evictions), "evicted"), (len(result.held), "held")]
    said = ", ".join(f"{count} {word}" for count, word in counts if count) or "nothing"
    return f"cycle {done.number}  {done.at:%Y-%m-%d %H:%M:%S}  {said}  {'same' if done.same else 'DIFFERENT'}"


def _cycle_json(done: Replayed) -> Json:
    result = done.result
    return {
        "cycle": done.number,
        "at": done.at.isoformat(),
        "same": done.same,
        "binds": {f"{b.namespace}/{b.name}": b.node for b in result.binds},
        "evicted": [f"{e.namespace}/{e.name}" for e in result.evictions],
        "pipelined": {f"{h.namespace}/{h.name}": h.node for h in result.held if h.promised},
    }


# What-if -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """The cluster of a recording, simulated with changes."""

    recording: Recording
    now: Any
    rounds: int

    def run(self, lists: Mapping[str, Sequence[Json]], policy: Policy) -> Outcome:
        """Simulate the scheduler on these objects. Raises `WorldError`."""
        settings = self.recording.settings
        world = completed(
            {key: list(objects) for key, objects in lists.items()},
            scheduler_names=settings.scheduler_names,
            now=self.now,
        )
        simulation = Simulation(
            World.read(world, scheduler_name=_NOBODY),
            policy,
            scheduler_names=settings.scheduler_names,
            default_queue=settings.default_queue,
            share=settings.share,
            queue_gates=settings.queue_gates,
        )
        return simulation.run(now=self.now, rounds=self.rounds)


_NOBODY = "default-scheduler"
"""The scheduler of pods without a `schedulerName`; on a cluster every pod has one."""


def _end(recording: Recording, extensions: Extensions) -> tuple[Any, Mapping[str, Sequence[Json]]]:
    """The time and the objects at the end of the file."""
    if not recording.steps:
        return recording.settings.taken, recording.lists
    scheduler = recording.scheduler(recording.policy(extensions))
    last = recording.settings.taken
    for done in replay(recording, scheduler):
        last = done.at
    return last + timedelta(seconds=1), recording.world_at_end(scheduler)


def _changed(
    lists: Mapping[str, Sequence[Json]],
    added: Sequence[Path],
    removed: Sequence[str],
    *,
    scheduler_name: str,
    now: datetime,
) -> Json:
    """The objects with the changes applied. Added pods without a scheduler name get this one's; objects without a
    creation time are the newest."""
    collected = Collected.of(lists)
    for what in removed:
        remove(collected.objects, what)
    for path in added:
        for number, document in enumerate(documents(path), start=1):
            if document.get("kind") == PODS.kind and isinstance(document.get("spec"), Mapping):
                document = {**document, "spec": {"schedulerName": scheduler_name, **document["spec"]}}
            if isinstance(document.get("metadata"), Mapping):
                since = {"creationTimestamp": format_time(now)}
                document = {**document, "metadata": {**since, **document["metadata"]}}
            collected.add(document, source=Origin(path, number))
    collected.say_ignored()
    lists = collected.lists()
    try:
        World.read(lists)
    except WorldError as error:
        raise CliError(collected.placed(error)) from error
    return lists


def _difference(before: Outcome, after: Outcome) -> Json:
    """The differences by pod and gang. A pod that is only bound to another node isn't a difference."""
    was, now = before.binds, after.binds
    gangs = sorted(before.phases.keys() | after.phases.keys())
    return {
        "binds": {pod: now[pod] for pod in sorted(now.keys() - was.keys())},
        "bindsNoMore": {pod: was[pod] for pod in sorted(was.keys() - now.keys())},
        "evicted": sorted(set(after.evicted) - set(before.evicted)),
        "evictedNoMore": sorted(set(before.evicted) - set(after.evicted)),
        "waits": {
            gang: {"before": _why(before, gang), "after": _why(after, gang)}
            for gang in gangs
            if _why(before, gang) != _why(after, gang)
        },
        "before": before.as_json(),
        "after": after.as_json(),
    }


def _why(outcome: Outcome, gang: str) -> str | None:
    why = outcome.reasons.get(gang)
    return None if why is None else why.reason.value


def _difference_text(before: Outcome, after: Outcome) -> str:
    lines = [f"before: {_totals(before)}", f"after:  {_totals(after)}", ""]
    gangs = sorted(before.phases.keys() | after.phases.keys())
    changes = [line for gang in gangs for line in _gang_change(before, after, gang)]
    still = [gang for gang in gangs if _waits_otherwise(before, after, gang)]
    for gang in still[:_STILL_SHOWN]:
        changes += [gang, f"  pending: {_why(after, gang)} (unchanged)", f"    {_cause(after, gang)}"]
    if len(still) > _STILL_SHOWN:
        changes.append(f"... and {len(still) - _STILL_SHOWN} more pending for the same reason, with other numbers")
    return "\n".join([*lines, *(changes or ["no changes"])])


_STILL_SHOWN = 5
"""Maximum number of gangs in the output that are pending as before with other numbers."""


def _waits_otherwise(before: Outcome, after: Outcome, gang: str) -> bool:
    """Whether the gang is pending for the same reason with other numbers, which show how much closer it is."""
    both = gang in before.reasons and gang in after.reasons
    return both and _why(before, gang) == _why(after, gang) and _cause(before, gang) != _cause(after, gang)


def _cause(outcome: Outcome, gang: str) -> str:
    return read_wait(outcome.reasons[gang].message)[1]


def _totals(outcome: Outcome) -> str:
    return f"{_pods(len(outcome.binds))} bound, {len(outcome.evicted)} evicted, {_wait(len(outcome.reasons))}"


def _pods(count: int) -> str:
    return f"{count} pod{'' if count == 1 else 's'}"


def _wait(count: int) -> str:
    return f"{count} gang{'' if count == 1 else 's'} pending"


def _gang_change(before: Outcome, after: Outcome, gang: str) -> list[str]:
    reported: list[str] = []
    for word, was, now in (
        ("bound", _count(before.binds, before, gang), _count(after.binds, after, gang)),
        ("evicted", _count(before.evicted, before, gang), _count(after.evicted, after, gang)),
    ):
        if was != now:
            reported.append(f"  {word}: {was} → {_pods(now)}")
    was, now = _why(before, gang), _why(after, gang)
    if was != now:
        reported.append(f"  pending: {was or 'no'} → {now or 'no'}")
        if now:
            reported.append(f"    {_cause(after, gang)}")
    return [gang, *reported] if reported else []


def _count(pods: Any, outcome: Outcome, gang: str) -> int:
    return sum(1 for pod in pods if outcome.gangs.get(pod) == gang)
