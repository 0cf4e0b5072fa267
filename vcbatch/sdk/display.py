"""Representations of a job: text, and HTML in a notebook, which is updated while a call waits.

All contents come from a server, and so from every client that may write there: they are escaped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from html import escape
from typing import Any

from vcbatch.api.phases import JobPhase
from vcbatch.sdk.models.job import Job, Task

_COLOURS = {
    JobPhase.RUNNING: "#1a7f37",
    JobPhase.COMPLETED: "#1a7f37",
    JobPhase.COMPLETING: "#1a7f37",
    JobPhase.FAILED: "#cf222e",
    JobPhase.TERMINATED: "#cf222e",
    JobPhase.TERMINATING: "#cf222e",
}
_OTHER_COLOUR = "#9a6700"
_MOST_TASKS = 50
_LONGEST_WHY = 500


class JobDisplay:
    """The representation of a handle: the last observed state of the job. Showing it sends no request."""

    namespace: str
    name: str
    last: Job | None

    def __repr__(self) -> str:
        phase = self.last.phase if self.last is not None else "not looked at"
        return f"<{type(self).__name__} {self.namespace}/{self.name}: {phase}>"

    def _repr_html_(self) -> str:
        if self.last is None:
            return f"<p>Job <b>{escape(self.namespace)}/{escape(self.name)}</b>, not looked at yet</p>"
        return html_of(self.last)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


def html_of(job: Job) -> str:
    """A card with name, phase, reason, and a bar of pods for each task."""
    status = job.status
    colour = _COLOURS.get(status.phase, _OTHER_COLOUR)
    why = "" if status.phase in (JobPhase.RUNNING, JobPhase.COMPLETED) else status.why
    if len(why) > _LONGEST_WHY:
        why = f"{why[:_LONGEST_WHY]}…"
    rows = "".join(_row(task, status.tasks.get(task.name, {})) for task in job.tasks[:_MOST_TASKS])
    if len(job.tasks) > _MOST_TASKS:
        rows += f"<tr><td colspan=3>… and {len(job.tasks) - _MOST_TASKS} more tasks</td></tr>"
    retries = f", restarted {status.retries}×" if status.retries else ""
    return (
        '<div style="border:1px solid #8884;border-radius:6px;padding:8px 12px;max-width:44em">'
        f"<b>{escape(job.namespace or '')}/{escape(job.name)}</b> "
        f'<span style="color:{colour};font-weight:600">{escape(status.phase)}</span>'
        f'<span style="opacity:.7"> in queue {escape(job.queue or "default")}{retries}</span>'
        + (f'<div style="margin-top:4px">{escape(why)}</div>' if why else "")
        + (f'<table style="margin-top:6px">{rows}</table>' if rows else "")
        + "</div>"
    )


def _row(task: Task, pods: Any) -> str:
    counts = {str(phase): int(count) for phase, count in pods.items()}
    done, running, failed = counts.get("Succeeded", 0), counts.get("Running", 0), counts.get("Failed", 0)
    total = max(task.replicas, done + running + failed, 1)
    bar = "".join(
        f'<span style="display:inline-block;height:9px;width:{100 * count / total:.1f}%;background:{colour}"></span>'
        for count, colour in ((done, "#1a7f37"), (running, "#54aeff"), (failed, "#cf222e"))
        if count
    )
    reported = (
        ", ".join(f"{count} {escape(phase)}" for phase, count in sorted(counts.items()) if count) or "no pods yet"
    )
    return (
        f'<tr><td style="text-align:left">{escape(task.name)}</td>'
        f'<td style="text-align:left"><span style="display:inline-block;width:12em;background:#8883;line-height:0">'
        f"{bar}</span></td>"
        f'<td style="text-align:left">{reported} of {task.replicas}</td></tr>'
    )


def live_display(shown: JobDisplay) -> Callable[[], None] | None:
    """Show the job in the present notebook, and return a function that updates it; None outside of a notebook."""
    shell = _notebook()
    if shell is None:
        return None
    from IPython.display import display  # pyright: ignore

    handle: Any = display(shown, display_id=True)  # pyright: ignore
    if handle is None:
        return None

    def update() -> None:
        handle.update(shown)

    return update


def _notebook() -> Any:
    """The shell of the present notebook; None outside of one. IPython is already imported in a notebook, and isn't
    imported here."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return shell if shell is not None and getattr(shell, "kernel", None) is not None else None
