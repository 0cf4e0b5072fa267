"""Whether a HyperNode selects anything (volcano-sh/volcano `pkg/webhooks/admission/hypernodes/validate`)."""

from __future__ import annotations

from collections.abc import Iterator

from vcbatch.api.hypernode import HyperNode, Member
from vcbatch.api.re2 import MalformedPattern, compile_pattern
from vcbatch.api.validate.fault import Cause, Fault


def hypernode_faults(hypernode: HyperNode) -> list[Fault]:
    """There are members, and patterns are patterns. That each member is selected in exactly one way is a rule of the
    schema (CEL), in Volcano as here."""
    if not hypernode.spec.members:
        text = "spec.members: Invalid value: []: member must have at least one member"
        return [Fault("spec.members", text, Cause.REQUIRED)]
    return [
        fault
        for index, member in enumerate(hypernode.spec.members)
        for fault in _member_faults(member, f"spec.members[{index}].selector")
    ]


def _member_faults(member: Member, path: str) -> Iterator[Fault]:
    selector = member.selector
    if selector.regex_match is not None:
        field, pattern = f"{path}.regexMatch.pattern", selector.regex_match.pattern
        try:
            compile_pattern(pattern)
        except MalformedPattern as error:
            text = f'Invalid value: "{pattern}": member regexMatch pattern is invalid: {error}'
            yield Fault(field, f"{field}: {text}")
