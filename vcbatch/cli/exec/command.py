"""`vcbatch job exec`: options, selection of the pod, streams."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

import click

from vcbatch.api import names
from vcbatch.api.phases import JobPhase
from vcbatch.api.pod import PodPhase
from vcbatch.api.resources import JOBS, PODS
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.fields import number, objects, text, words
from vcbatch.cli.base.names import job_names
from vcbatch.cli.base.output import CliError, note
from vcbatch.cli.resources.kinds import job_phase

if TYPE_CHECKING:
    from vcbatch.runtime.client.http import HttpApi
    from vcbatch.runtime.client.remote_command import RemoteCommand

Json = dict[str, Any]

_NOT_RUN: Final = 126
"""The exit code of shells for a file that can't be executed."""


@click.command("exec")
@click.argument("name", metavar="JOB", shell_complete=job_names)
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] COMMAND [ARGUMENT]...")
@click.option("--task", default=None, metavar="NAME", help="Task of the pod.  [default: first running pod]")
@click.option("--index", type=click.IntRange(min=0), default=None, metavar="N", help="Index of the pod in its task.")
@click.option("-c", "--container", default=None, metavar="NAME", help="Container.  [default: first container]")
@click.option("-i", "--stdin", "stdin", is_flag=True, help="Pass stdin to the container.")
@click.option("-t", "--tty", "tty", is_flag=True, help="Allocate a terminal.")
@access_options
def command(
    access: Access,
    name: str,
    words: tuple[str, ...],
    task: str | None,
    index: int | None,
    container: str | None,
    stdin: bool,
    tty: bool,
) -> int:
    """Run a command in a pod of a job, and exit with its exit code.

    \b
    vcbatch job exec -it train -- bash
    vcbatch job exec train --task worker --index 3 -- nvidia-smi
    """
    if tty and not (stdin and sys.stdin.isatty()):
        if stdin:
            note("stdin is not a terminal; ignoring --tty")
        tty = False
    return run_in_pod(access, name, words, task=task, index=index, container=container, stdin=stdin, tty=tty)


def run_in_pod(
    access: Access,
    name: str,
    words: Sequence[str],
    *,
    task: str | None,
    index: int | None,
    container: str | None,
    stdin: bool,
    tty: bool,
) -> int:
    """Run a command in the first running pod of a job that matches the options, and return its exit code. Raises
    `CliError`, `ApiError`."""

    async def work(api: HttpApi) -> int:
        pods = await _running(api, name, access.namespace, task=task, index=index)
        pod = pods[0]
        chosen = _container(pod, container)
        if len(pods) > 1:
            note(f"using pod {text(pod, 'metadata', 'name')} of {len(pods)}; use --task and --index to select another")
        from vcbatch.runtime.client.remote_command import run_command

        remote = await run_command(
            api,
            text(pod, "metadata", "name"),
            namespace=access.namespace,
            container=chosen,
            command=words,
            stdin=stdin,
            tty=tty,
        )
        return await _converse(remote, stdin=stdin, tty=tty)

    return access.streaming(work)


async def _running(api: HttpApi, name: str, namespace: str, *, task: str | None, index: int | None) -> Sequence[Json]:
    """The running pods of the job that match the options, in the order of its tasks. Raises `CliError` where there is
    none."""
    job: Json = await api.get(JOBS, name, namespace=namespace)
    tasks = objects(job, "spec", "tasks")
    order = {text(one, "name"): place for place, one in enumerate(tasks)}
    if task is not None and task not in order:
        raise CliError(f"job {name} has no task {task}", hint=f"Tasks: {', '.join(order)}.")
    largest = max((number(one, "replicas") for one in tasks if task in (None, text(one, "name"))), default=0)
    if index is not None and index >= largest:
        raise CliError(f"job {name} has no pod with index {index}", hint=f"The highest index is {largest - 1}.")
    listing = await api.list(PODS, namespace=namespace, label_selector=f"{names.JOB_NAME}={name}")
    uid = text(job, "metadata", "uid")
    ours = [
        pod for pod in listing.items if any(one["uid"] == uid for one in objects(pod, "metadata", "ownerReferences"))
    ]
    chosen = [pod for pod in ours if (task is None or _task(pod) == task) and (index is None or _index(pod) == index)]
    running = [pod for pod in chosen if text(pod, "status", "phase") == PodPhase.RUNNING]
    if not running:
        phase = job_phase(job)
        if phase in (JobPhase.COMPLETED, JobPhase.FAILED, JobPhase.TERMINATED):
            raise CliError(f"job {name} is {phase} and has no running pods")
        which = "selected " if task is not None or index is not None else ""
        hint = f"List its pods: `vcbatch job describe {name}`. If it is pending: `vcbatch job explain {name}`"
        raise CliError(f"job {name} has no {which}running pods", hint=hint)
    return sorted(running, key=lambda pod: (order.get(_task(pod), len(order)), _index(pod)))


def _task(pod: Json) -> str:
    return words(pod, "metadata", "labels").get(names.TASK_SPEC, "")


def _index(pod: Json) -> int:
    given = words(pod, "metadata", "labels").get(names.TASK_INDEX, "")
    return int(given) if given.isdecimal() else 0


def _container(pod: Json, wanted: str | None) -> str:
    known = [text(one, "name") for one in objects(pod, "spec", "containers")]
    if wanted is None:
        return known[0]
    if wanted not in known:
        pod_name = text(pod, "metadata", "name")
        raise CliError(f"pod {pod_name} has no container {wanted}", hint=f"Containers: {', '.join(known)}.")
    return wanted


async def _converse(remote: RemoteCommand, *, stdin: bool, tty: bool) -> int:
    """Forward the streams until the command has ended, and return its exit code."""
    from vcbatch.cli.exec.console import emit, raw_terminal, resized, window
    from vcbatch.runtime.client.remote_command import STDERR, NotRunError

    tasks: set[asyncio.Task[None]] = set()

    def send_size() -> None:
        columns, rows = window()
        task = asyncio.get_running_loop().create_task(remote.resize(columns=columns, rows=rows))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    try:
        with ExitStack() as stack:
            if tty:
                stack.enter_context(raw_terminal())
                stack.enter_context(resized(send_size))
                send_size()
            if stdin:
                tasks.add(asyncio.create_task(_feed(remote)))
            async for stream, data in remote.output():
                emit(2 if stream == STDERR else 1, data)
    except NotRunError as error:
        hint = "The program must exist in the container image."
        raise CliError(str(error), hint=hint, exit_code=_NOT_RUN) from error
    else:
        assert remote.exit_code is not None  # noqa: S101 - `output` ends with it, or raises
        return remote.exit_code
    finally:
        for task in list(tasks):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await remote.close()


async def _feed(remote: RemoteCommand) -> None:
    from vcbatch.cli.exec.console import typed

    async for data in typed(sys.stdin.fileno()):
        await remote.write(data)
    await remote.close_input()
