"""Validation of HyperNodes (volcano-sh/volcano `pkg/webhooks/admission/hypernodes/validate`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from vcbatch.api.hypernode import HyperNode, Member
from vcbatch.api.re2 import MalformedPattern, compile_pattern, cost_of
from vcbatch.api.validate.errors import Cause, ValidationError

MOST_PATTERN_COST: Final = 200_000
"""The maximum cost of the different patterns of one HyperNode, in instructions of RE2: a fraction of a second, and some
1,500 patterns such as `^rack-12-node-[0-9]+$`."""


def hypernode_errors(hypernode: HyperNode) -> list[ValidationError]:
    """Errors of missing members and of invalid patterns. That each member is selected in exactly one way is a rule of
    the schema (CEL), as in Volcano."""
    if not hypernode.spec.members:
        text = "spec.members: Invalid value: []: member must have at least one member"
        return [ValidationError("spec.members", text, Cause.REQUIRED)]
    return list(_pattern_errors(hypernode.spec.members))


def _pattern_errors(members: Sequence[Member]) -> Iterator[ValidationError]:
    """Each different pattern is compiled once. All together may cost no more than `MOST_PATTERN_COST`."""
    judged: dict[str, str] = {}
    left = MOST_PATTERN_COST
    for index, member in enumerate(members):
        if member.selector.regex_match is None:
            continue
        field, pattern = f"spec.members[{index}].selector.regexMatch.pattern", member.selector.regex_match.pattern
        if pattern not in judged:
            if left <= 0:
                text = (
                    f"Too many: the different patterns of the first {index} members are all that one HyperNode may have"
                )
                yield ValidationError(
                    "spec.members", f"spec.members: {text}; use labelMatch, or HyperNodes below this one"
                )
                return
            try:
                found = compile_pattern(pattern)
            except MalformedPattern as error:
                found = error
            judged[pattern] = str(found) if isinstance(found, MalformedPattern) else ""
            left -= cost_of(found)
        if judged[pattern]:
            text = f'Invalid value: "{pattern}": member regexMatch pattern is invalid: {judged[pattern]}'
            yield ValidationError(field, f"{field}: {text}")
