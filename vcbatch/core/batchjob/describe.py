"""The state machine as a section of the page `docs/states.md`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vcbatch.core.batchjob.decide import TABLE, Standing, Verb

_HEAD: Final = """\
## The standings of a Kubernetes Job in local mode

Generated from the table in `vcbatch/core/batchjob/decide.py`. A standing is read from the Job's spec and conditions; of
several that fit, the upper one counts.

"""
_WHEN: Final[Mapping[Standing, str]] = {
    Standing.FOREIGN: "`managedBy` names another controller",
    Standing.RUNNING: "otherwise",
    Standing.SUSPENDED: "`suspend` is true",
    Standing.FAILING: "condition FailureTarget",
    Standing.SUCCEEDING: "condition SuccessCriteriaMet",
    Standing.FINISHED: "condition Complete or Failed",
    Standing.DELETING: "it is being deleted",
}
_WHAT: Final[Mapping[Verb, str]] = {
    Verb.IGNORE: "nothing",
    Verb.RUN: "count what ended; judge; have as many pods as are wanted",
    Verb.PAUSE: "count what ended; judge; have no pods",
    Verb.END: "delete what runs; count what ended; once no pod is left, Complete or Failed",
    Verb.LET_GO: "count what ended; take all finalizers off",
    Verb.EXPIRE: "delete it when `ttlSecondsAfterFinished` is over",
}


def render() -> str:
    """The section, in Markdown."""
    lines = [_HEAD, "| standing | when | what is done |\n", "|---|---|---|\n"]
    lines += [f"| **{standing}** | {_WHEN[standing]} | {_WHAT[verb]} |\n" for standing, verb in TABLE.items()]
    return "".join(lines)
