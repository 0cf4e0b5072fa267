"""The state machine as the page `docs/states.md`, which is the output of `render`."""

from __future__ import annotations

from typing import Final

from vcbatch.api.job import Action, JobPhase
from vcbatch.core.job.budget import INFRASTRUCTURE_RETRIES, Charge
from vcbatch.core.job.states import EXHAUSTED, TABLE, Cell, Retain, Verb

_COLUMNS: Final = (
    Action.RESTART_JOB,
    Action.RESTART_TASK,
    Action.RESTART_POD,
    Action.RESTART_PARTITION,
    Action.ABORT_JOB,
    Action.COMPLETE_JOB,
    Action.TERMINATE_JOB,
    Action.RESUME_JOB,
    Action.SYNC_JOB,
)

_HEAD: Final = """\
# The phases of a job

Generated from the table in `vcbatch/core/job/states/`. A test fails when the page is out of date, and prints the
command that updates it.

A row is the current phase of a job, a column the action that a policy, a Command or the controller requests. A cell
gives the operation on the pods and the next phase:

| | |
|---|---|
| S | SyncJob: create and delete pods to match the spec |
| K(none) K(succeeded) K(soft) | KillJob: delete the PodGroup and all pods, but keep none, the succeeded, the finished |
| T | KillTarget: delete the pods of one task, of one partition, or one pod |
| D | continue to delete the pods of the restart, create none |
| → | the next phase, immediately or when the condition is met |
| · | the same as the last column |

"""

_TAIL: Final = f"""
A restart is counted before any pod is deleted. Failures of the job count against `maxRetry`; evictions, preemptions,
lost nodes and pods deleted by users have a separate limit ({INFRASTRUCTURE_RETRIES}); resumes are not counted. When no
retries are left, the restart becomes {{exhausted}}: the job fails and its last failed pods remain.

When a job becomes Completed or Failed by the rules of Running, its remaining pods are deleted, K(soft), in the same
step. `status.version` counts attempts: it increases whenever an attempt ends (with every K that leaves a phase). No
policy applies to pods of older versions.
"""


def render() -> str:
    """The page, in Markdown."""
    lines = [_HEAD]
    lines.append("| phase | " + " | ".join(_COLUMNS) + " |\n")
    lines.append("|---" * (len(_COLUMNS) + 1) + "|\n")
    for phase, row in TABLE.items():
        cells = [_cell(phase, row[action]) if action in row else "·" for action in _COLUMNS]
        lines.append(f"| **{phase}** | " + " | ".join(cells) + " |\n")
    lines.append(_TAIL.format(exhausted=_cell(JobPhase.RUNNING, EXHAUSTED)))
    return "".join(lines)


def _cell(phase: JobPhase, cell: Cell) -> str:
    text = _verb(cell)
    if cell.then.text:
        text += f"; → {cell.then.text}"
    elif cell.then.reaches and cell.then.reaches != (phase,):
        text += f" → {cell.then.reaches[0]}"
    return text + (f", costs {cell.charge}" if cell.charge is Charge.RETRY else "")


def _verb(cell: Cell) -> str:
    match cell.verb:
        case Verb.SYNC:
            return "S"
        case Verb.KILL:
            return f"K({cell.retain or Retain.NOTHING})"
        case Verb.TARGET:
            return "T"
        case Verb.DRAIN:
            return "D"
