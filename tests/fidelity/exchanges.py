"""Reads groups of requests from YAML.

A file has `about` (the idea), `paths` (abbreviations for the paths of requests: `cms` stands as `<cms>`), and `steps`.
A step has one key that is a method, whose value is the path, and further keys:

| key | meaning |
|---|---|
| `body` | the object to send; strings in it are filled in |
| `raw` | a text to send as it stands |
| `type` | media type of the body, or json, yaml, merge, strategic, jsonpatch, apply (default json) |
| `headers` | further headers; `Accept` may be json, yaml, table, partial, partials, protobuf |
| `save` | a name for the answer: `<NAME.rv>`, `<NAME.uid>`, `<NAME.continue>`, `<NAME:a.b>` later stand for parts |
| `each` | the step several times: a text stands for `<each>` in the path (escaped), an object is laid over `body` |
| `until` | ask again until the code (`{code: 404}`) or a value of the answer (`{status.phase: Active}`) is this |
| `events` | of a watch: so many events are read, then the stream is closed; `all`: until the server ends it |
| `keep` | of a watch: it stays open under this name, and `READ: NAME` with `events` reads on |
| `pick` | only these parts of the body are compared: lists of keys; `{name: x}` takes the items of a list like that |
| `as` | `nobody` sends no credentials; another text is sent as the bearer token |
| `setup` | true: the answer is not compared |
| `managed` | true: managed fields are compared |

Laying over: mappings join, `(absent)` removes a key, and a key that
starts with `/` is a JSON pointer to what is replaced. `<ns>` is the group's namespace.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

Json = dict[str, Any]

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "READ")
FOLDER = Path(__file__).parent / "groups"
ABSENT = "(absent)"

MEDIA_TYPES = {
    "json": "application/json",
    "yaml": "application/yaml",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "jsonpatch": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
ACCEPTS = {
    "json": "application/json",
    "yaml": "application/yaml",
    "protobuf": "application/vnd.kubernetes.protobuf",
    "table": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "partial": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "partials": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "aggregated": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
}
_KEYS = frozenset(
    {"body", "raw", "type", "headers", "save", "each", "until", "events", "keep", "pick", "as", "setup", "managed"}
)  # fmt: skip
_PLACE = re.compile(r"<([a-z][\w-]*)(?:\.(\w+)|:([\w.]+))?>")
_SHORT = {"rv": "metadata.resourceVersion", "uid": "metadata.uid", "continue": "metadata.continue"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One request, and what is to be observed of its answer."""

    method: str
    path: str
    body: Any = None
    raw: str | None = None
    media_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    save: str = ""
    until: Mapping[str, Any] = field(default_factory=dict[str, Any])
    events: int | str = 0
    keep: str = ""
    pick: Sequence[Sequence[Any]] = ()
    credentials: str | None = None
    setup: bool = False
    managed: bool = False

    @property
    def ask(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Group:
    """Requests that belong together, played in order."""

    name: str
    about: str
    steps: Sequence[Step]

    @property
    def compared(self) -> Sequence[Step]:
        return [step for step in self.steps if not step.setup]


class BadGroup(ValueError):
    """A file of requests that says something which isn't understood."""


def load(path: Path) -> Group:
    """The group in a file. Raises `BadGroup`."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    paths: Mapping[str, str] = content.get("paths", {})
    if "ns" in paths:
        raise BadGroup(f"{path.name}: <ns> is the namespace")
    steps: list[Step] = []
    for index, raw in enumerate(content["steps"]):
        try:
            steps.extend(_steps(raw, paths))
        except (KeyError, TypeError, ValueError) as error:
            raise BadGroup(f"{path.name}, step {index}: {error!r}: {raw}") from error
    return Group(path.stem, content["about"], steps)


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def group(name: str) -> Group:
    return load(FOLDER / f"{name}.yaml")


def _steps(raw: Json, paths: Mapping[str, str]) -> Iterator[Step]:
    method = next(key for key in raw if key in METHODS)
    if unknown := set(raw) - _KEYS - {method}:
        raise ValueError(f"unknown keys {sorted(unknown)}")
    for name, value in paths.items():
        raw = {**raw, method: raw[method].replace(f"<{name}>", value)}
    if "each" not in raw:
        yield _step(method, raw)
        return
    for item in raw["each"]:
        variant = {key: value for key, value in raw.items() if key != "each"}
        if isinstance(item, dict):
            variant["body"] = overlaid(copy.deepcopy(raw.get("body")), item)
        else:
            variant[method] = raw[method].replace("<each>", quote(str(item), safe=""))
        yield _step(method, variant)


def _step(method: str, raw: Json) -> Step:
    headers = {name: str(value) for name, value in raw.get("headers", {}).items()}
    if "Accept" in headers:
        headers["Accept"] = ACCEPTS.get(headers["Accept"], headers["Accept"])
    media = str(raw.get("type", "json"))
    return Step(
        method=method,
        path=raw[method],
        body=raw.get("body"),
        raw=raw.get("raw"),
        media_type=MEDIA_TYPES.get(media, media),
        headers=headers,
        save=raw.get("save", ""),
        until=raw.get("until", {}),
        events=raw.get("events", 0),
        keep=raw.get("keep", ""),
        pick=raw.get("pick", ()),
        credentials=raw.get("as"),
        setup=raw.get("setup", False),
        managed=raw.get("managed", False),
    )


def overlaid(base: Any, over: Any) -> Any:
    """`over` laid over `base`, which it may change."""
    if not isinstance(over, dict):
        return over
    result: Any = base if isinstance(base, dict) else {}
    for key, value in over.items():
        if key.startswith("/"):
            _point(result, key, value)
        elif value == ABSENT:
            result.pop(key, None)
        else:
            result[key] = overlaid(result.get(key), value)
    return result


def _point(node: Any, pointer: str, value: Any) -> None:
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]
    for part in parents:
        node = node[int(part)] if isinstance(node, list) else node.setdefault(part, {})
    if isinstance(node, list):
        if value == ABSENT:
            del node[int(last)]
        elif last == "-":
            node.append(value)
        else:
            node[int(last)] = value
    elif value == ABSENT:
        node.pop(last, None)
    else:
        node[last] = value


def at(value: Any, dotted: str) -> Any:
    """The value at `a.b.0`; None where there is none."""
    for part in dotted.split("."):
        if isinstance(value, list):
            value = value[int(part)] if part.isdigit() and int(part) < len(value) else None
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            return None
    return value


def filled(value: Any, names: Mapping[str, Any], *, escape: bool = False) -> Any:
    """The value with every place in its strings filled from `names`: texts, and saved objects."""
    if isinstance(value, str):
        return _PLACE.sub(_filler(names, escape=escape), value)
    if isinstance(value, dict):
        return {filled(key, names): filled(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, names) for item in value]
    return value


def _filler(names: Mapping[str, Any], *, escape: bool) -> Callable[[re.Match[str]], str]:
    def fill(match: re.Match[str]) -> str:
        name, short, dotted = match.groups()
        if name not in names:
            raise BadGroup(f"{match[0]} stands for nothing")
        path = _SHORT.get(short, "") if short else dotted
        found = str(at(names[name], path) if path else names[name])
        return quote(found, safe="/:") if escape else found

    return fill
