"""`vcbatch run`: options, plan, submission."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from vcbatch.api.resources import JOBS
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.names import priority_class_names, queue_names
from vcbatch.cli.base.output import CliError, note, say
from vcbatch.cli.base.spans import SpanType
from vcbatch.cli.base.titles import title
from vcbatch.cli.run.start import StartOptions, add_start, start_options
from vcbatch.cli.run.submission import submitted_job

if TYPE_CHECKING:
    from vcbatch.sdk.export import Export

Json = dict[str, Any]

_FLAGS: Final[Mapping[str, str]] = {
    "command": "PROGRAM",
    "processes": "--nproc-per-node",
    "priority_class": "--priority-class",
    "volumes": "--volume",
    "time_limit": "--time-limit",
    "max_retries": "--max-retries",
    "work_dir": "--workdir",
}
"""Field of a request -> its option, where the names differ."""


@click.command("run", context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False})
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGUMENT]...")
@click.option(
    "--nodes", type=int, default=1, show_default=True, metavar="N", help="Number of nodes (pods), gang-scheduled."
)
@click.option(
    "--nproc-per-node", "processes", type=int, default=None, metavar="N",
    help="Processes per node.  [default: number of GPUs, else 1]",
)  # fmt: skip
@click.option("--gpus", type=int, default=None, metavar="N", help="GPUs per node.  [default: 0]")
@click.option("--cpus", default="", metavar="QUANTITY", help="CPUs per node, e.g. 8 or 500m.")
@click.option("--memory", default="", metavar="QUANTITY", help="Memory per node, e.g. 64Gi. Also the limit.")
@click.option(
    "--framework", type=click.Choice(["pytorch", "tensorflow", "mpi", "ray", "none"]), default=None,
    help="Launcher and rendezvous to set up.  [default: pytorch for several processes of a Python program, else none]",
)  # fmt: skip
@click.option("--image", default="", metavar="IMAGE", help="Container image; required on a cluster.")
@click.option("--queue", default="", metavar="NAME", help="Queue.  [default: default]", shell_complete=queue_names)
@click.option(
    "--priority-class",
    default="",
    metavar="NAME",
    help="PriorityClass of the job.",
    shell_complete=priority_class_names,
)
@click.option("--name", default="", metavar="NAME", help="Name of the job.  [default: generated from the program name]")
@click.option(
    "-e",
    "--env",
    "env",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="Environment variable; without a value, taken from the shell. May be repeated.",
)
@click.option(
    "--export", default=None, metavar="ALL|NONE|NAME[=VALUE],...",
    help="Variables of the shell for a job on a local server; their values aren't stored in the job.  [default: ALL]",
)  # fmt: skip
@click.option(
    "-v", "--volume", "volumes", multiple=True, metavar="SOURCE:PATH[:ro]",
    help="Mount a PersistentVolumeClaim, host directory, ConfigMap or Secret; may be repeated.",
)  # fmt: skip
@click.option(
    "--workdir",
    "work_dir",
    default="",
    metavar="PATH",
    help="Working directory.  [default: from the image; locally, the current directory]",
)
@click.option(
    "--array", default=None, metavar="FIRST-LAST[:STEP][%AT_ONCE]",
    help="Run the program once per index ($VC_ARRAY_INDEX), at most AT_ONCE at the same time.",
)  # fmt: skip
@click.option(
    "--time-limit", default=None, metavar="TIME", help="Time limit of the job, e.g. 90s, 2h30m, 3d or 12:00:00."
)
@click.option(
    "--signal", default=None, metavar="NAME[@SECONDS]",
    help="Signal to send before a preempted or timed out pod is terminated, e.g. USR1@60.",
)  # fmt: skip
@click.option(
    "--max-retries",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="Maximum number of restarts after a failure; in an array, per member.",
)
@start_options
@click.option(
    "--ttl", type=SpanType(), default=None, metavar="TIME",
    help="Delete the job this long after it has finished, e.g. 1h or 7d.",
)  # fmt: skip
@click.option("--replace", is_flag=True, help="Delete an existing job of the same --name first; stops its pods.")
@click.option(
    "--wait-impossible", is_flag=True,
    help="Keep a job that can't start on the cluster as it is, instead of cancelling it.",
)  # fmt: skip
@click.option("--detach", is_flag=True, help="Submit the job and exit.")
@click.option("--dry-run", is_flag=True, help="Print the job without submitting it.")
@click.option(
    "-o", "--output", type=click.Choice(["yaml", "json", "name"]), default=None,
    help="Output format of --dry-run (default: yaml) or --detach.",
)  # fmt: skip
@access_options
def command(
    access: Access,
    program: tuple[str, ...],
    env: tuple[str, ...],
    volumes: tuple[str, ...],
    array: str | None,
    time_limit: str | None,
    signal: str | None,
    framework: str | None,
    gpus: int | None,
    export: str | None,
    ttl: timedelta | None,
    replace: bool,
    wait_impossible: bool,
    detach: bool,
    dry_run: bool,
    output: str | None,
    start: StartOptions,
    **options: Any,
) -> int:
    """Run a program as a job, print its logs, and exit with its exit code.

    \b
    vcbatch run train.py --epochs 3
    vcbatch run --nodes 4 --gpus 8 --image registry/train:1 -- train.py --epochs 3
    vcbatch run --array 0-99%10 --cpus 2 -- ./sweep.sh

    Programs that end in .py or start with -m are run with Python, several processes with torchrun. On a local server
    (`vcbatch up`) the program runs as local processes in the current directory and with the environment of the shell;
    on a cluster it must be in the image.

    Ctrl-C asks whether to cancel the job or leave it running. Exit codes: that of the program, 124 if the time limit
    was exceeded, 125 if the job can't start on the cluster, 130 if it was cancelled.
    """
    if replace and not options["name"]:
        raise click.UsageError("--replace requires --name")
    if output is not None and not (dry_run or detach):
        raise click.UsageError("-o requires --dry-run or --detach")
    variables = _export(export)
    job, local = _composed(
        access, program, env=env, volumes=volumes, array=array, time_limit=time_limit, signal=signal,
        framework=framework, dry_run=dry_run, options={**options, "gpus": gpus or 0},
    )  # fmt: skip
    if export is not None and not local:
        raise click.UsageError("--export is for a local server; on a cluster, set variables with -e or in the image")
    if ttl is not None:
        job["spec"]["ttlSecondsAfterFinished"] = int(ttl.total_seconds())
    job = add_start(job, start, access, submit=not dry_run)
    if dry_run:
        _print(job, output or "yaml")
        return 0
    if local and gpus is None:
        from vcbatch.cli.run.gpu_note import note_free_gpus

        note_free_gpus(access)
    created = _created(access, job, variables if local else None, required=export is not None, replace=replace)
    name = created["metadata"]["name"]
    from vcbatch.cli.run.follow import NextCommands

    next_commands = NextCommands(name, access)
    submitted = f"{title(JOBS, name)} created in queue {created['spec']['queue']}"
    if detach:
        if output is not None:
            _print(created, output)
        else:
            say(submitted)
            note("To follow or cancel it:")
            next_commands.say()
        return 0
    note(submitted)
    server = access.connection().server
    from vcbatch.cli.base.local_end import LocalEnd, local_state
    from vcbatch.cli.run.follow import follow
    from vcbatch.sdk.logs import MAX_STREAMS

    return access.streaming(
        lambda api: follow(
            api,
            created,
            next_commands=next_commands,
            server=server,
            ended=LocalEnd(local_state(access.kubeconfig, server), follow_up=next_commands.logs),
            end_impossible=not wait_impossible,
        ),
        streams=MAX_STREAMS,
    )


def _export(given: str | None) -> Export:
    from vcbatch.sdk.export import Export, InvalidExport

    try:
        return Export() if given is None else Export.parse(given, os.environ)
    except InvalidExport as error:
        raise click.BadParameter(str(error), param_hint="--export") from error


def _created(access: Access, job: Json, export: Export | None, *, required: bool, replace: bool) -> Json:
    """The job as created, with the exported environment; with `replace`, in place of an existing job of its name. Where
    the environment can't be stored, raises `CliError` if it is `required`, else reports that the program runs without
    it."""
    if export is None:
        return submitted_job(access, job, replace=replace)
    from vcbatch.cli.run.shell_environment import stored_environment
    from vcbatch.sdk.export import with_environment

    with stored_environment(access, export, required=required) as number:
        body = job if number is None else with_environment(job, number)
        return submitted_job(access, body, replace=replace)


def _composed(
    access: Access,
    program: tuple[str, ...],
    *,
    env: tuple[str, ...],
    volumes: tuple[str, ...],
    array: str | None,
    time_limit: str | None,
    signal: str | None,
    framework: str | None,
    dry_run: bool,
    options: Mapping[str, Any],
) -> tuple[Json, bool]:
    """The job for the options, and whether its server is local. Raises `click.BadParameter` for invalid ones."""
    from vcbatch.cli.run.place import here, must_be_here, must_have_torch, on_this_machine
    from vcbatch.sdk.compose import Array, CannotCompose, Framework, JobRequest, Volume, compose
    from vcbatch.sdk.compose.notice import Notice
    from vcbatch.sdk.compose.program import Program
    from vcbatch.sdk.compose.request import VolumeKind, time_limit_seconds
    from vcbatch.sdk.compose.tasks import framework_of

    request: dict[str, Any] = {**options, "command": program, "env": _env(env)}
    request["local"] = _is_local(access, needed=not (dry_run and options["image"]))
    if request["local"]:
        request["command"], request["python"], directory = here(program)
        request["work_dir"] = str(Path(directory, options["work_dir"]))
    try:
        mounts = tuple(map(Volume.parse, volumes))
        if request["local"]:
            must_be_here(request["work_dir"], *(mount.source for mount in mounts if mount.kind is VolumeKind.FOLDER))
        asked = JobRequest(
            **request,
            volumes=mounts,
            array=None if array is None else Array.parse(array),
            time_limit=None if time_limit is None else time_limit_seconds(time_limit),
            signal=None if signal is None else Notice.parse(signal),
            framework=None if framework is None else Framework(framework),
        )
        job = compose(asked)
    except CannotCompose as error:
        if error.option == "image":
            hint = "Pass --image. To run it locally: `vcbatch up --detach`, then set KUBECONFIG as printed."
            raise CliError(f"{error} ({access.connection().server})", hint=hint, exit_code=2) from error
        flag = _FLAGS.get(error.option, f"--{error.option}")
        raise click.BadParameter(str(error), param_hint=flag) from error
    if not request["local"]:
        return job, False
    if not dry_run and framework_of(asked, Program.of(asked.command)) is Framework.PYTORCH:
        must_have_torch(asked.python, processes=asked.processes or 1, directory=request["work_dir"])
    return on_this_machine(job, access), True


def _is_local(access: Access, *, needed: bool) -> bool:
    """Whether the server is in local mode. Unless it is `needed`, an unreachable server counts as not local, so that a
    job with an image can be composed offline."""
    from vcbatch.cli.run.place import is_local

    try:
        return is_local(access)
    except CliError:
        if needed:
            raise
        return False


def _env(given: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals and name not in os.environ:
            raise click.BadParameter(f"{name} is not set in the shell: use {name}=VALUE", param_hint="--env")
        found[name] = value if equals else os.environ[name]
    return found


def _print(job: Json, output: str) -> None:
    if output == "name":
        metadata = job["metadata"]
        say(title(JOBS, metadata.get("name") or metadata["generateName"]))
    elif output == "json":
        say(json.dumps(job, indent=2))
    else:
        from vcbatch.api import yaml_writer

        say(yaml_writer.dump(job, width=120), end="")
