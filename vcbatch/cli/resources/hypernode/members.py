"""The text for the members of a HyperNode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vcbatch.api.hypernode import MemberType
from vcbatch.api.loose import listed, part
from vcbatch.cli.base.fields import objects, text, words
from vcbatch.cli.resources.sections import labels_text

Json = dict[str, Any]


def patterns(hypernode: Json) -> Iterator[str]:
    """The members other than HyperNodes by name, in short form for a line of a tree."""
    by_name = 0
    for member in objects(hypernode, "spec", "members"):
        kind, selector = text(member, "type"), part(member, "selector")
        if pattern := text(selector, "regexMatch", "pattern"):
            yield f"{kind}s matching /{pattern}/"
        elif selector.get("labelMatch"):
            yield f"{kind}s by labels"
        elif kind == MemberType.NODE:
            by_name += 1
    if by_name:
        yield f"{by_name} node{'' if by_name == 1 else 's'} by name"


def in_full(hypernode: Json) -> Iterator[str]:
    """All members, each with its selector."""
    for member in objects(hypernode, "spec", "members"):
        kind, selector = text(member, "type"), part(member, "selector")
        if pattern := text(selector, "regexMatch", "pattern"):
            yield f"{kind}s matching /{pattern}/"
        elif chosen := part(selector, "labelMatch"):
            yield f"{kind}s with {_labels(chosen)}"
        else:
            yield f"{kind} {text(selector, 'exactMatch', 'name')}"


def _labels(selector: Json) -> str:
    shown = labels_text(words(selector, "matchLabels"))
    for one in objects(selector, "matchExpressions"):
        key, operator, values = text(one, "key"), text(one, "operator"), ", ".join(map(str, listed(one, "values")))
        shown += f"{', ' if shown else ''}{key} {operator}{f' ({values})' if values else ''}"
    return shown or "empty label selector (matches none)"
