"""The rules of `concurrencyPolicy` as a section of the page `docs/states.md`."""

from __future__ import annotations

from typing import Final

from vcbatch.api.cronjob import ConcurrencyPolicy
from vcbatch.core.cronjob.concurrency import Verb, verb_for

_VERBS: Final = {
    Verb.START: "its job is made",
    Verb.WAIT: "it waits, and is lost when the next slot comes or its deadline passes",
    Verb.REPLACE: "the jobs that run are deleted, and its job is made",
}
_HEAD: Final = """\
## A slot of a CronJob

Generated from the table in `vcbatch/core/cronjob/concurrency.py`: what becomes of a slot that is due.

| `concurrencyPolicy` | no job of an earlier slot runs | one does |
|---|---|---|
"""


def render() -> str:
    """The section, in Markdown."""
    rows = (
        f"| **{policy}** | {_VERBS[verb_for(policy, busy=False)]} | {_VERBS[verb_for(policy, busy=True)]} |\n"
        for policy in ConcurrencyPolicy
    )
    return _HEAD + "".join(rows)
