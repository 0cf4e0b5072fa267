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

Generated from the table in `vcbatch/core/job/states/` (a test finds drift and says how to write it anew).

A row is the phase that a job is in, a column what a policy, a Command or the controller itself asks for. A cell says
what is done to the pods and which phase follows:

| | |
|---|---|
| S | SyncJob: make the pods what the spec asks for |
| K(none) K(succeeded) K(soft) | KillJob: delete the PodGroup and all pods, but keep none, the succeeded, the finished |
| T | KillTarget: delete the pods of one task, of one partition, or one pod |
| D | go on deleting what is being restarted, create nothing |
| → | the phase that follows, at once or when the condition holds |
| · | the same as the last column |

"""

_TAIL: Final = f"""
A restart is paid for before anything is killed. The job's own failures use up `maxRetry`; evictions, preemptions, lost
nodes and pods deleted by people have a budget of their own ({INFRASTRUCTURE_RETRIES}); resumes are free. When the
budget is used up, the restart becomes {{exhausted}}: the job fails and its last failed pods remain.

A job that becomes Completed or Failed by the rules of Running has its remaining pods killed, K(soft), in the same step.
`status.version` counts attempts: it grows whenever an attempt ends (with every K that leaves a phase), and pods of
older versions concern no policy.
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
