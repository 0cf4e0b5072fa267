"""The state machine as a section of the page `docs/states.md`."""

from __future__ import annotations

from typing import Final

from vcbatch.api.job import Action
from vcbatch.api.jobflow import JobFlowPhase
from vcbatch.core.jobflow.states import TABLE, Cell, Verb

_COLUMNS: Final = (
    Action.RESTART_JOB,
    Action.ABORT_JOB,
    Action.RESUME_JOB,
    Action.TERMINATE_JOB,
    Action.SYNC_JOB,
)
_VERBS: Final = {
    Verb.FOLLOW: "",
    Verb.SUSPEND: "suspend",
    Verb.RESUME: "resume",
    Verb.RETRY: "discard failed jobs",
}
_HEAD: Final = """\
## The phases of a JobFlow

Generated from the table in `vcbatch/core/jobflow/states/`. A row is the current phase of a flow, a column
the action of a Command; SyncJob applies without a Command. "·" is refused.

"""
_TAIL: Final = """
The resulting phase determines the operation on the jobs:

| phase | jobs |
|---|---|
| Pending, Running | jobs that are due are created; discarded jobs are deleted and then recreated |
| the same, suspended | no job is created; running jobs are suspended, and resumed with the flow |
| Failed | no job is created; running jobs continue |
| Terminating | no job is created; running jobs are terminated |
| Succeed | deleted if `jobRetainPolicy` is `delete` |
"""


def render() -> str:
    """The section, in Markdown."""
    lines = [_HEAD, "| phase | " + " | ".join(_COLUMNS) + " |\n", "|---" * (len(_COLUMNS) + 1) + "|\n"]
    for phase, row in TABLE.items():
        cells = [_cell(phase, row[action]) if action in row else "·" for action in _COLUMNS]
        lines.append(f"| **{phase}** | " + " | ".join(cells) + " |\n")
    return "".join([*lines, _TAIL])


def _cell(phase: JobFlowPhase, cell: Cell) -> str:
    then = f"→ {cell.then.text}" if cell.then.text else ""
    return " ".join(filter(None, (_VERBS[cell.verb], then))) or f"stays {phase}"
