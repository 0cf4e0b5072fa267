"""The state machine as a section of the page `docs/states.md`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vcbatch.core.batchjob.decide import TABLE, Standing, Verb

_HEAD: Final = """\
## States of a Kubernetes Job in local mode

Generated from the table in `vcbatch/core/batchjob/decide.py`. The state is derived from the Job's spec and conditions;
if several match, the first row applies.

"""
_WHEN: Final[Mapping[Standing, str]] = {
    Standing.FOREIGN: "`managedBy` names another controller",
    Standing.RUNNING: "otherwise",
    Standing.SUSPENDED: "`suspend` is true",
    Standing.FAILING: "condition FailureTarget",
    Standing.SUCCEEDING: "condition SuccessCriteriaMet",
    Standing.FINISHED: "condition Complete or Failed",
    Standing.DELETING: "`deletionTimestamp` is set",
}
_WHAT: Final[Mapping[Verb, str]] = {
    Verb.IGNORE: "nothing",
    Verb.RUN: "count finished pods; apply the policies; create or delete pods to match the spec",
    Verb.PAUSE: "count finished pods; apply the policies; delete all pods",
    Verb.END: "delete running pods; count finished pods; when no pod is left, Complete or Failed",
    Verb.LET_GO: "count finished pods; remove all finalizers",
    Verb.EXPIRE: "delete the Job after `ttlSecondsAfterFinished`",
}


def render() -> str:
    """The section, in Markdown."""
    lines = [_HEAD, "| state | condition | operation |\n", "|---|---|---|\n"]
    lines += [f"| **{standing}** | {_WHEN[standing]} | {_WHAT[verb]} |\n" for standing, verb in TABLE.items()]
    return "".join(lines)
