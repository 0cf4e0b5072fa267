"""The rules of `concurrencyPolicy` as a section of the page `docs/states.md`."""

from __future__ import annotations

from typing import Final

from vcbatch.api.cronjob import ConcurrencyPolicy
from vcbatch.core.cronjob.concurrency import Verb, verb_for

_VERBS: Final = {
    Verb.START: "the job is created",
    Verb.WAIT: "the run waits, and is missed at the next scheduled run or after its deadline",
    Verb.REPLACE: "running jobs are deleted, and the job is created",
}
_HEAD: Final = """\
## Scheduled runs of a CronJob

Generated from the table in `vcbatch/core/cronjob/concurrency.py`: the effect of a scheduled run.

| `concurrencyPolicy` | no earlier job is running | an earlier job is running |
|---|---|---|
"""


def render() -> str:
    """The section, in Markdown."""
    rows = (
        f"| **{policy}** | {_VERBS[verb_for(policy, busy=False)]} | {_VERBS[verb_for(policy, busy=True)]} |\n"
        for policy in ConcurrencyPolicy
    )
    return _HEAD + "".join(rows)
