"""`vcbatch up`: local mode, in the foreground or detached."""

from __future__ import annotations

import json
import os
import select
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from vcbatch.cli.base.options import DEFAULT_SIZE, AddressType, BytesType, NodeSizeType, RetentionType, state_dir_option
from vcbatch.cli.base.output import CliError, note, say
from vcbatch.cli.base.state import StateDir, default_state_dir
from vcbatch.cli.components.controllers_options import controllers_options
from vcbatch.cli.components.feature_gates import QUEUE_GATES, feature_gates_option
from vcbatch.interfaces import interpreter

if TYPE_CHECKING:
    from vcbatch.cli.local.options import LocalOptions
    from vcbatch.runtime.serving import Address

_DETACH_SECONDS = 60.0
_EXIT_SECONDS = 10.0
_LAST_WORDS = 4096  # bytes


@click.command("up")
@state_dir_option
@click.option(
    "--port", type=click.IntRange(0, 65535), default=None, metavar="N",
    help="Port of the API server on 127.0.0.1; 0 selects a free port.  [default: the last one used, else 6443]",
)  # fmt: skip
@click.option("--detach", "-d", is_flag=True, help="Run in the background; return when ready.")
@click.option(
    "--virtual-nodes", type=click.IntRange(0, 10_000), default=0, metavar="N",
    help="Add N simulated nodes, for scheduling tests at scale.",
)  # fmt: skip
@click.option(
    "--virtual-node-size", type=NodeSizeType(), default=None, metavar="RESOURCES",
    help="Capacity of a simulated node, e.g. cpu=8,memory=32Gi,nvidia.com/gpu=2,pods=20.  "
         f"[default: {DEFAULT_SIZE}]",
)  # fmt: skip
@click.option(
    "--kubelet-mode", type=click.Choice(["auto", "userns", "nss", "plain", "none"]), default="auto", show_default=True,
    help="Pod isolation mode; none runs pods only on simulated nodes.",
)  # fmt: skip
@click.option(
    "--webhooks", type=click.Choice(["in-process", "external"]), default="in-process", show_default=True,
    help="Admission: in-process, or external webhooks that you register by URL.",
)  # fmt: skip
@click.option(
    "--scheduler-conf", type=click.Path(exists=True, dir_okay=False, path_type=Path), default=None, metavar="FILE",
    help="Scheduler configuration file; reloaded on change.  [default: built-in]",
)  # fmt: skip
@click.option(
    "--plugin", "plugins", multiple=True, metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Python file that defines custom scheduler PLUGINS or ACTIONS; may be repeated.",
)  # fmt: skip
@feature_gates_option
@controllers_options
@click.option(
    "--record-cycles", type=click.Path(file_okay=False, path_type=Path), default=None, metavar="DIR",
    help="Record input and decisions of the scheduler to a ring of files in this directory, for `vcbatch replay`.",
)  # fmt: skip
@click.option(
    "--listen-address", type=AddressType(), default=None, metavar="HOST:PORT",
    help="Address of /metrics of the controllers and the scheduler.  [default: disabled]",
)  # fmt: skip
@click.option(
    "--log-retention", type=RetentionType(), default="7d", show_default=True, metavar="TIME",
    help="Time for which logs of deleted pods are kept, e.g. 12h or 7d; 0 deletes logs with their pods.",
)  # fmt: skip
@click.option(
    "--log-retention-size", type=BytesType(), default="1Gi", show_default=True, metavar="QUANTITY",
    help="Maximum size of all kept logs together; the oldest are deleted.",
)  # fmt: skip
@click.option("--ready-fd", type=int, default=None, hidden=True)
def command(
    state_dir: Path,
    port: int | None,
    detach: bool,
    virtual_nodes: int,
    virtual_node_size: dict[str, str] | None,
    kubelet_mode: str,
    webhooks: Literal["in-process", "external"],
    scheduler_conf: Path | None,
    plugins: tuple[Path, ...],
    feature_gates: Mapping[str, bool],
    controller_conf: Path | None,
    inherit_owner_annotations: bool,
    record_cycles: Path | None,
    listen_address: Address | None,
    log_retention: timedelta,
    log_retention_size: int,
    ready_fd: int | None,
) -> int:
    """Start a local API server with controllers, scheduler and kubelet.

    Prints a kubeconfig for kubectl. Pods run as processes of your user; no root or container engine is needed.
    """
    from vcbatch.cli.local.options import LocalOptions

    if not sys.platform.startswith("linux") and kubelet_mode != "none":
        raise CliError(
            f"pods run as processes on Linux only, and this is {'macOS' if sys.platform == 'darwin' else sys.platform}",
            hint="Run vcbatch in a Linux container: docker run -it -v .:/src -w /src python:3.13 bash",
        )
    if virtual_node_size is not None and not virtual_nodes:
        raise click.UsageError("--virtual-node-size requires --virtual-nodes")
    options = LocalOptions(
        state=StateDir(state_dir),
        port=port,
        virtual_nodes=virtual_nodes,
        virtual_node_size=virtual_node_size,
        kubelet_mode=kubelet_mode,
        webhooks=webhooks,
        scheduler_conf=scheduler_conf,
        plugins=plugins,
        queue_gates=feature_gates.get(QUEUE_GATES, False),
        controller_conf=controller_conf,
        inherit_owner_annotations=inherit_owner_annotations,
        record_cycles=record_cycles,
        listen_address=listen_address,
        log_retention=log_retention,
        log_retention_size=log_retention_size,
    )
    return _detached(options) if detach else _here(options, ready_fd)


def _here(options: LocalOptions, ready_fd: int | None) -> int:
    """Run until stopped. The result is written to `ready_fd`, where given, instead of the terminal."""
    from vcbatch.cli.local.process import run

    started = time.monotonic()

    def ready(report: dict[str, Any]) -> None:
        if ready_fd is not None:
            _report(ready_fd, {"ready": report})
            return
        _announce(options.state, report, time.monotonic() - started)
        say("Press Ctrl-C to stop.")

    try:
        return run(options, ready=ready, to_log=ready_fd is not None)
    except CliError as error:
        if ready_fd is None:
            raise
        _report(ready_fd, {"error": str(error), "hint": error.hint})
        return error.exit_code


def _report(fd: int, message: dict[str, Any]) -> None:
    """Write one line to the parent command, which may have ended in the meantime."""
    try:
        os.write(fd, json.dumps(message).encode() + b"\n")
        os.close(fd)
    except OSError:
        pass


def _announce(state: StateDir, report: dict[str, Any], seconds: float) -> None:
    for warning in report["warnings"]:
        note(f"warning: {warning}")
    say(f"vcbatch is ready ({seconds:.1f} s): {report['machine']}")
    say()
    say(f"  export KUBECONFIG={shlex.quote(str(state.kubeconfig))}")
    say("  vcbatch run train.py            # or: kubectl apply -f job.yaml")
    say("  vcbatch job list")
    say()
    for line in report["jobs"]:
        say(line)


def _detached(options: LocalOptions) -> int:
    """Start the same command in a new session, with its output in the log, and wait for its result."""
    started, state = time.monotonic(), options.state
    state.create()
    if (running := state.running()) is not None:
        raise CliError(
            f"vcbatch is already running on {state.path} (pid {running.pid})",
            hint="Stop it with `vcbatch down`, or start another with --state-dir DIR.",
        )
    reading, writing = os.pipe()
    with _open_log(state.log) as log:
        child = subprocess.Popen(
            interpreter.vcbatch("up", *options.arguments(), "--ready-fd", str(writing)),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(writing,),
            start_new_session=True,
        )
    os.close(writing)
    try:
        answer = _wait_for(reading, child, state.log)
    except BaseException:
        # The user was not informed that it runs, so it is ended.
        child.terminate()
        raise
    finally:
        os.close(reading)
    if "error" in answer:
        with suppress(subprocess.TimeoutExpired):
            child.wait(timeout=_EXIT_SECONDS)  # until then it locks the directory, and the next attempt would fail
        raise CliError(answer["error"], hint=answer.get("hint", ""))
    _announce(state, answer["ready"], time.monotonic() - started)
    down = (
        "vcbatch down"
        if state.path == default_state_dir()
        else f"vcbatch down --state-dir {shlex.quote(str(state.path))}"
    )
    say(f"Running in the background. To stop it: `{down}`. Log: {state.log}")
    return 0


def _open_log(path: Path) -> Any:
    """The log file for output outside of logging, such as a final traceback."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")


def _wait_for(reading: int, child: subprocess.Popen[bytes], log: Path) -> dict[str, Any]:
    deadline = time.monotonic() + _DETACH_SECONDS
    data = b""
    while not data.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0:
            raise CliError(f"vcbatch was not ready after {_DETACH_SECONDS:.0f} s", hint=f"See {log}.")
        if select.select([reading], [], [], min(left, 0.5))[0]:
            chunk = os.read(reading, 65536)
            if not chunk:  # it closed the pipe without a message
                code = child.wait(timeout=10)
                raise CliError(f"vcbatch failed to start (exit code {code})", hint=_last_words(log))
            data += chunk
    return json.loads(data)


def _last_words(log: Path) -> str:
    """The last line of the log, which tells why the process ended."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _LAST_WORDS))
        lines = file.read().decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"{last}\n  Log: {log}" if last else f"Log: {log}"
