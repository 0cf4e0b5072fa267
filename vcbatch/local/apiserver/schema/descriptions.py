"""The descriptions of the fields of the built-in API, for `kubectl explain`.

The texts are in the models of the installed `kubernetes` package. Importing those takes more than a second and many
megabytes, so another process does it, once per release of the package, and writes a small file to the user's cache.
Until then, fields are explained without descriptions.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vcbatch.interfaces import interpreter

_FORMAT = 1
"""The format of the file: increment it when the collected data changes."""

Words = Mapping[str, Mapping[str, str]]
"""Type key (`core/v1.Pod`) to field name to its description; "" is the type itself."""


class _Cache:
    """The descriptions in this process: read at most once, collected at most once."""

    def __init__(self) -> None:
        self.words: Words | None = None
        self.collector: subprocess.Popen[bytes] | None = None
        self.started = False


_CACHE = _Cache()


def load() -> Words:
    """The descriptions, or none while they aren't collected; starts collecting them in the background."""
    if _CACHE.words is not None:
        return _CACHE.words
    path = _path()
    if path is None:
        _CACHE.words = {}
        return _CACHE.words
    try:
        _CACHE.words = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        _collect(path)
        return {}
    if _CACHE.collector is not None:
        _CACHE.collector.wait()
        _CACHE.collector = None
    return _CACHE.words or {}


def warm() -> None:
    """Start collecting in the background where that hasn't been done for this release, so that the first request has
    descriptions."""
    path = _path()
    if path is not None and not path.exists():
        _collect(path)


def stop() -> None:
    """Stop a collection in progress."""
    if _CACHE.collector is not None:
        _CACHE.collector.kill()
        _CACHE.collector.wait()
        _CACHE.collector = None


def _path() -> Path | None:
    try:
        version = importlib.metadata.version("kubernetes")
    except importlib.metadata.PackageNotFoundError:
        return None
    base = os.environ.get("XDG_CACHE_HOME") or ""
    root = Path(base) if base.startswith("/") else Path.home() / ".cache"
    return root / "vcbatch" / f"kubernetes-{version}-descriptions-v{_FORMAT}.json"


def _collect(path: Path) -> None:
    if _CACHE.started:
        if _CACHE.collector is not None and _CACHE.collector.poll() is not None:
            _CACHE.collector = None
        return
    _CACHE.started = True
    _CACHE.collector = subprocess.Popen(
        interpreter.function(__name__, "main", str(path)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def collect() -> Words:
    """Read the descriptions from the models. Imports all of them: only called in a process of its own."""
    import kubernetes.client.models as models

    from vcbatch.local.apiserver.schema.types import structs

    found: dict[str, dict[str, str]] = {}
    for key, struct in structs().items():
        model = next((model for name in _model_names(key) if (model := getattr(models, name, None))), None)
        if model is None or not hasattr(model, "model_fields"):
            continue
        words = {"": _tidy(model.__doc__)}
        for name, field in model.model_fields.items():
            words[field.serialization_alias or field.alias or name] = _tidy(field.description)
        found[key] = {name: text for name, text in words.items() if text and (not name or name in struct.fields)}
    return found


_GROUPED = frozenset(
    {
        "admissionregistration",
        "apiextensions",
        "authentication",
        "authorization",
        "core",
        "discovery",
        "events",
        "rbac",
        "resource",
        "storage",
    }
)


def _model_names(key: str) -> Iterator[str]:
    """The client's names for the model of a type: with the group where the name is ambiguous."""
    package, _, name = key.partition(".")
    group, _, version = package.partition("/")
    if group in _GROUPED:
        yield f"{group.capitalize()}{version.capitalize()}{name}"
    yield f"{version.capitalize()}{name}"


def _tidy(text: Any) -> str:
    plain = re.sub(r"\s+", " ", text).strip() if isinstance(text, str) else ""
    return plain.partition(" Attributes: openapi_types")[0]


def main(name: str) -> None:
    """Write the descriptions to the file of that name, atomically."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
        temporary = Path(file.name)
        try:
            json.dump(collect(), file, separators=(",", ":"), ensure_ascii=False)
            file.flush()
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
