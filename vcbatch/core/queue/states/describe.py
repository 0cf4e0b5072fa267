"""The state machine as a section of the page `docs/states.md`."""

from __future__ import annotations

from typing import Final

from vcbatch.api.job import Action
from vcbatch.core.queue.states import TABLE

_COLUMNS: Final = (Action.OPEN_QUEUE, Action.CLOSE_QUEUE, Action.SYNC_QUEUE)
_HEAD: Final = """\
## The states of a Queue

Generated from the table in `vcbatch/core/queue/states/`. A row is the current state of a queue, a column the action of
a Command; SyncQueue applies without a Command, and for actions without a rule ("·").

"""
_TAIL: Final = """
A queue without a state is treated as Open. Closing a queue closes its child queues; they open again with it, except
those that were closed by a user.
"""


def render() -> str:
    """The section, in Markdown."""
    lines = [_HEAD, "| state | " + " | ".join(_COLUMNS) + " |\n", "|---" * (len(_COLUMNS) + 1) + "|\n"]
    for state, row in TABLE.items():
        cells = [f"→ {row[action].text}" if action in row else "·" for action in _COLUMNS]
        lines.append(f"| **{state}** | " + " | ".join(cells) + " |\n")
    return "".join([*lines, _TAIL])
