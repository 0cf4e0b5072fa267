"""The terminated state of a container's run, in the terms of a pod's status."""

from __future__ import annotations

import contextlib
import signal
from datetime import UTC, datetime
from typing import Any

from vcbatch.api.reasons import ContainerReason
from vcbatch.interfaces.processes import ProcessExit
from vcbatch.local.kubelet import logs, records
from vcbatch.local.kubelet.lifecycle import Ended
from vcbatch.local.kubelet.records import Run
from vcbatch.local.kubelet.status import MAX_TERMINATION_MESSAGE

Json = dict[str, Any]

_FALLBACK_LINES = 80
_FALLBACK_BYTES = 2048
_UNKNOWN = "the container is gone and has left no exit status: its first process was killed, or the machine went down"


def ended(container: Json, run: Run, process_exit: ProcessExit, *, container_id: str) -> Ended:
    """The terminated state: exit code, reason, and a message where there is one."""
    code = process_exit.exit_code
    reason = ContainerReason.COMPLETED if code == 0 else ContainerReason.ERROR
    message = _termination_message(container, run, code)
    if records.was_out_of_memory(run.path):
        reason = ContainerReason.OOM_KILLED
        message = message or "the container's memory exceeded its limit"
    elif process_exit.unknown:
        reason, message = ContainerReason.STATUS_UNKNOWN, message or _UNKNOWN
    elif process_exit.start_error:
        reason, message = ContainerReason.START_ERROR, process_exit.start_error
    elif process_exit.signal is not None and not message:
        message = f"ended by {_signal_name(process_exit.signal)}"
    finished = datetime.fromtimestamp(process_exit.finished_at, UTC)
    return Ended(
        exit_code=code,
        signal=process_exit.signal,
        started_at=run.started_at,
        finished_at=max(finished, run.started_at),
        reason=reason,
        message=message,
        container_id=container_id,
    )


def _termination_message(container: Json, run: Run, code: int) -> str:
    text = ""
    with contextlib.suppress(OSError), (run.path / "termination-log").open("rb") as file:
        text = file.read(MAX_TERMINATION_MESSAGE).decode(errors="replace")
    if not text and code != 0 and container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
        text = logs.last_lines(run.path, lines=_FALLBACK_LINES, size=_FALLBACK_BYTES)
    return text


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
