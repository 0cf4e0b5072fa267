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
    Verb.RETRY: "discard what failed",
}
_HEAD: Final = """\
## The phases of a JobFlow

Generated from the table in `vcbatch/core/jobflow/states/`. A row is the phase that a flow is in, a column what a
Command asks for; SyncJob is what happens without one. "·" is refused.

"""
_TAIL: Final = """
What is done to the jobs follows from the phase that results:

| phase | jobs |
|---|---|
| Pending, Running | those that are due are made; discarded ones are deleted, and made again once they are gone |
| the same, suspended | none is made; those that run are suspended, to be resumed with the flow |
| Failed | none is made; those that run go on |
| Terminating | none is made; those that run are terminated |
| Succeed | deleted where `jobRetainPolicy` is `delete` |
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
