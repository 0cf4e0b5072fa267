"""Errors of a server for an object, mapped to the fields of the manifest."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from vcbatch.api.resources import JOBS
from vcbatch.cli.files.manifests import Manifest
from vcbatch.cli.files.wording import apply_error

if TYPE_CHECKING:
    from vcbatch.interfaces.api import ApiError

Json = Mapping[str, Any]

_TYPED: Final = re.compile(r"failed to create typed patch object \([^()]*\):\s*(?:errors:\s*)?(.*)", re.DOTALL)
"""The error of a server for an apply patch that doesn't fit the kind's schema: status 500, without causes
(structured-merge-diff, typed/helpers.go)."""
_ONE: Final = re.compile(
    r"(?:^|(?<=\s))\.(?P<path>\S.*?): (?P<what>field not declared in schema|expected .*?|duplicate .*?|.*?)"
    r"(?=\s+\.[A-Za-z_\"\[]\S*: |\s*$)",
    re.DOTALL,
)
_KEYED: Final = re.compile(r"\[([^\]\[]*=[^\]]*)\]")
_IMMUTABLE: Final = re.compile(r"may not change fields|is immutable|updates to .* are forbidden", re.DOTALL)
_CHANGEABLE: Final = re.compile(r"spec\.(?:minAvailable|priorityClassName|tasks\[\d+\]\.(?:replicas|minAvailable))")
"""Fields of a job that may be changed (pkg/webhooks/admission/jobs/validate/admit_job.go)."""
_MOST: Final = 20
"""Maximum number of fields in a message."""


def typed(error: ApiError, manifest: Manifest) -> list[tuple[str, str]]:
    """Field and error of everything that doesn't fit the kind's schema; empty for errors of another kind."""
    found = _TYPED.search(str(error))
    if found is None:
        return []
    errors = [(_indexed(one["path"], manifest.value), one["what"].strip()) for one in _ONE.finditer(found[1].strip())]
    return [(path, apply_error(path, what, manifest.value)) for path, what in errors] or [("", found[1].strip())]


def _indexed(path: str, value: Any) -> str:
    """The path with indexes for the keys of lists: `spec.tasks[name="a"].replicas` becomes `spec.tasks[0].replicas`."""
    while (keyed := _KEYED.search(path)) is not None:
        items = _at(value, path[: keyed.start()])
        wanted = dict(_pairs(keyed[1]))
        index = next(
            (
                number
                for number, item in enumerate(items)
                if isinstance(item, dict) and all(item.get(key) == one for key, one in wanted.items())
            ),
            None,
        )
        if index is None:
            return path[: keyed.start()]
        path = f"{path[: keyed.start()]}[{index}]{path[keyed.end() :]}"
    return path.removesuffix("[]")


def _pairs(text: str) -> Iterator[tuple[str, Any]]:
    for pair in text.split(","):
        key, _, value = pair.partition("=")
        try:
            yield key, json.loads(value)
        except (ValueError, RecursionError):
            yield key, value


def _at(value: Any, path: str) -> list[Any]:
    """The list at a path of names and indexes; empty where there is none."""
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        if name:
            value = cast("Json", value).get(name) if isinstance(value, dict) else None
        else:
            value = value[int(index)] if isinstance(value, list) and int(index) < len(value) else None
    return cast("list[Any]", value) if isinstance(value, list) else []


def immutable_fields(error: ApiError, before: Json | None, manifest: Manifest) -> tuple[str, ...]:
    """The fields of the manifest that differ from the stored object, where the server rejects a change of immutable
    fields; empty for errors of another kind."""
    if before is None or _IMMUTABLE.search(str(error)) is None:
        return ()
    found = [
        path
        for path in _differing(manifest.value.get("spec"), before.get("spec"), "spec")
        if manifest.resource != JOBS or _CHANGEABLE.fullmatch(path) is None
    ]
    return (*found[:_MOST], *((f"and {len(found) - _MOST} more",) if len(found) > _MOST else ()))


def _differing(given: Any, stored: Any, path: str) -> Iterator[str]:
    if isinstance(given, dict) and isinstance(stored, dict):
        for key, value in cast("Json", given).items():
            yield from _differing(value, cast("Json", stored).get(key), f"{path}.{key}")
    elif isinstance(given, list) and isinstance(stored, list) and len(given) == len(stored):
        for index, (value, other) in enumerate(zip(cast("list[Any]", given), cast("list[Any]", stored), strict=True)):
            yield from _differing(value, other, f"{path}[{index}]")
    elif given != stored and not (stored is None and given in (None, "", 0, False, [], {})):
        yield path
