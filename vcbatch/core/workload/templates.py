"""Pod templates: their equality, and their hashes."""

from __future__ import annotations

import json
from typing import Final

from vcbatch.api import names
from vcbatch.api.loose import part
from vcbatch.api.model import Json
from vcbatch.core.workload.pods import content_hash

_ADDED: Final = (names.POD_TEMPLATE_HASH,)


def plain(template: Json) -> Json:
    """The template as its author wrote it: without the label that distinguishes ReplicaSets, and without empty
    fields."""
    metadata = {key: value for key, value in part(template, "metadata").items() if value}
    labels = {key: value for key, value in part(metadata, "labels").items() if key not in _ADDED}
    metadata.pop("labels", None)
    if labels:
        metadata["labels"] = labels
    return {**({"metadata": metadata} if metadata else {}), "spec": part(template, "spec")}


def same_template(one: Json, other: Json) -> bool:
    """Whether both templates give equal pods, without the labels that distinguish ReplicaSets."""
    return plain(one) == plain(other)


def template_hash(template: Json, collisions: int) -> str:
    """The hash of a template. `collisions`: how often another object had the name with the hash."""
    text = json.dumps(plain(template), sort_keys=True, separators=(",", ":"))
    return content_hash(f"{text}{collisions}" if collisions else text)
