"""`vcbatch simulate`: simulate the scheduler on given objects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from vcbatch.api.loose import listed
from vcbatch.api.names import DEFAULT_SCHEDULER
from vcbatch.api.queue import DEFAULT
from vcbatch.api.timestamps import parse_time
from vcbatch.cli.base.output import CliError, complain, note, say
from vcbatch.cli.files.documents import documents
from vcbatch.cli.files.misfits import first_misfit
from vcbatch.cli.files.plugin_files import extensions_option
from vcbatch.cli.files.policy_file import read_policy
from vcbatch.cli.files.source import Origin
from vcbatch.cli.whatif.outcome_text import text_of
from vcbatch.cli.whatif.world_files import Collected, completed
from vcbatch.scheduler import Policy, PolicyError, default_policy
from vcbatch.scheduler.framework.policy import Extensions
from vcbatch.scheduler.model.share import WHOLE, Share
from vcbatch.scheduler.policy.reader import with_actions
from vcbatch.scheduler.simulation import MOMENT, Case, Outcome, Simulation, World, WorldError
from vcbatch.scheduler.simulation.recording import Recording
from vcbatch.scheduler.simulation.world import BY_KEY

Json = Mapping[str, Any]


class TimeType(click.ParamType):
    """A time in the format of Kubernetes."""

    name = "TIME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        try:
            return parse_time(str(value))
        except ValueError:
            self.fail(f"invalid time {value!r} (e.g. 2026-06-01T00:00:00Z)", param, ctx)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    policy: Policy | None
    actions: str | None
    rounds: int
    names: tuple[str, ...]
    default_queue: str
    at: datetime | None


@click.command("simulate")
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
)  # fmt: skip
@click.option(
    "--policy", "policy_file", type=click.Path(exists=True, dir_okay=False, path_type=Path), default=None,
    metavar="FILE", help="Scheduler configuration file.  [default: built-in, or the configuration of the case]",
)  # fmt: skip
@extensions_option
@click.option(
    "--actions", default=None, metavar="LIST", help='Override the actions of the configuration: "allocate, backfill".'
)
@click.option(
    "--rounds", type=click.IntRange(1, 10_000), default=1, show_default=True, metavar="N",
    help="Maximum number of cycles; stops earlier if a cycle changes nothing.",
)  # fmt: skip
@click.option(
    "--scheduler-name", "names", multiple=True, default=(DEFAULT_SCHEDULER,), show_default=True, metavar="NAME",
    help="schedulerName of the pods to schedule (also pods without one); may be repeated.",
)  # fmt: skip
@click.option(
    "--default-queue", default=DEFAULT, show_default=True, metavar="QUEUE", help="Queue of PodGroups without a queue."
)
@click.option(
    "--at", type=TimeType(), default=None, help="Start time of the simulation.  [default: now; cases: 2026-06-01]"
)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
def command(
    files: tuple[Path, ...],
    policy_file: Path | None,
    extensions: Extensions,
    actions: str | None,
    rounds: int,
    names: tuple[str, ...],
    default_queue: str,
    at: datetime | None,
    output: str,
) -> int:
    """Simulate scheduling of the objects in FILEs, without a cluster.

    FILEs are YAML or JSON as printed by `kubectl get -o yaml`: nodes, queues, jobs, PodGroups, pods, PriorityClasses,
    HyperNodes and other kinds that the scheduler reads. All files form one input set. FILEs can also contain recorded
    cases (`name`, `actions`, `tiers`, objects) or worlds (`id`, `policy`, objects; one per line); each is simulated
    separately.

    Pods bound in one cycle run in the next; evicted pods are deleted. With -o json each case or world is one line with
    `id` or `name`, `binds`, `evicted`, `pipelined`, `allocated`, `podGroupPhase`, `taskStatusCounts`, `reasons`, or
    `error` if it can't be simulated. Exits 1 after an error.
    """
    policy = None if policy_file is None else read_policy(policy_file, extensions=extensions)
    options = _Options(policy=policy, actions=actions, rounds=rounds, names=names, default_queue=default_queue, at=at)
    failed = False
    for key, label, recorded, run in _runs(files, options):
        try:
            outcome = run()
        except (PolicyError, WorldError) as error:
            failed = True
            _refuse(key, label, str(error), output)
        except CliError:
            raise
        except Exception as error:  # a case that fails doesn't stop the others
            failed = True
            _refuse(key, label, f"internal error: {type(error).__name__}: {error}", output)
        else:
            failed = failed or bool(outcome.failures)
            _print(key, label, outcome, output, recorded=recorded)
    return 1 if failed else 0


_Run = tuple[str, str, bool, Callable[[], Outcome]]


def _runs(files: tuple[Path, ...], options: _Options) -> Iterator[_Run]:
    """Each case as it is read, and finally the cluster state of all objects: key and text of its label, whether it is
    recorded, and the function that runs it."""
    collected = Collected()
    objects = cases = 0
    for path in files:
        for number, document in enumerate(documents(path), start=1):
            origin = Origin(path, number)
            if Recording.recognises(document):
                raise CliError(f"{path}: is a snapshot", hint=f"Use `vcbatch replay {path}`.")
            if Case.recognises(document):
                cases += 1
                yield (
                    *Case.label(document),
                    True,
                    lambda document=document, origin=origin: _case(document, origin, options),
                )
            else:
                objects += 1
                collected.add(document, source=origin)
    if not objects and not cases:
        raise CliError(f"{', '.join(map(str, files))}: no objects or cases found")
    if objects:
        collected.say_ignored()
        if "nodes" not in collected.objects:
            note(f"{', '.join(map(str, files))}: no Node objects; nothing can be scheduled")
        yield "name", ",".join(path.stem for path in files), False, lambda: _world(collected, options)


def _case(document: Json, origin: Origin, options: _Options) -> Outcome:
    try:
        case = Case.read(document, policy=options.policy)
    except WorldError as error:
        field = f"{error.key}[{error.index}].{error.field}".rstrip(".") if error.key else ""
        raise WorldError(f"{origin.place(field)}: {error}") from error
    except PolicyError as error:
        raise WorldError(f"{origin}: {error}") from error
    try:
        return _run(case.world, case.policy, options, now=options.at or MOMENT, share=case.share)
    except (CliError, PolicyError, WorldError):
        raise
    except Exception as error:
        wrong = first_misfit(
            (f"{key}[{index}]", read.resource, obj)
            for key, read in BY_KEY.items()
            for index, obj in enumerate(listed(document, key))
            if isinstance(obj, dict)
        )
        if wrong is None:
            raise
        raise WorldError(f"{origin.place(f'{wrong[0]}.{wrong[1]}')}: {wrong[0]}: {wrong[2]}") from error


def _world(collected: Collected, options: _Options) -> Outcome:
    try:
        return _world_run(collected, options)
    except (CliError, PolicyError, WorldError):
        raise
    except Exception as error:
        # Admission rejects such objects on a cluster, so other code doesn't handle them.
        wrong = collected.misfit()
        if not wrong:
            raise
        raise WorldError(wrong) from error


def _world_run(collected: Collected, options: _Options) -> Outcome:
    now = options.at or datetime.now(UTC)
    lists = completed(collected.lists(), scheduler_names=options.names, now=now)
    try:
        world = World.read(lists, scheduler_name=options.names[0])
    except WorldError as error:
        raise WorldError(collected.placed(error)) from error
    return _run(world, options.policy, options, now=now)


def _run(world: World, policy: Policy | None, options: _Options, *, now: datetime, share: Share = WHOLE) -> Outcome:
    chosen = policy or default_policy()
    if options.actions is not None:
        chosen = with_actions(chosen, options.actions)
    simulation = Simulation(
        world, chosen, scheduler_names=options.names, default_queue=options.default_queue, share=share
    )
    return simulation.run(now=now, rounds=options.rounds)


def _print(key: str, label: str, outcome: Outcome, output: str, *, recorded: bool) -> None:
    if output == "json":
        say(json.dumps({key: label, **outcome.as_json(recorded=recorded)}, separators=(",", ":")))
    else:
        say(text_of(outcome, title=label))


def _refuse(key: str, label: str, error: str, output: str) -> None:
    if output == "json":
        say(json.dumps({key: label, "error": error}, separators=(",", ":")))
    else:
        complain(CliError(f"{label}: {error}" if label else error))
