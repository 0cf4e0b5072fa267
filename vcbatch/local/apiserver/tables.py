"""Table columns as `kubectl get` shows them: shared cells and Kubernetes' texts for ages and selectors.

Source of the columns and cells: kubernetes `pkg/printers/internalversion`, `k8s.io/apimachinery/pkg/util/duration`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from vcbatch.api.duration import human
from vcbatch.local.apiserver.registry import Column, Json

NONE = "<none>"
UNKNOWN = "<unknown>"
UNSET = "<unset>"

Cell = Callable[[Json, datetime], Any]


def parse_time(text: object) -> datetime | None:
    """A timestamp of the API as an aware datetime, or None for an absent or malformed one."""
    if not isinstance(text, str) or not text:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def since(text: object, now: datetime) -> str:
    """The age of a timestamp of the API, or `<unknown>`."""
    moment = parse_time(text)
    return UNKNOWN if moment is None else human(now - moment)


def dig(obj: Any, *path: str) -> Any:
    """The value at a path of keys, or None as soon as one is missing."""
    for key in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(key)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return obj  # pyright: ignore[reportUnknownVariableType]


def name_cell(obj: Json, _now: datetime) -> Any:
    return dig(obj, "metadata", "name")


def age_cell(obj: Json, now: datetime) -> str:
    return since(dig(obj, "metadata", "creationTimestamp"), now)


def created_cell(obj: Json, _now: datetime) -> Any:
    return dig(obj, "metadata", "creationTimestamp")


def at(*path: str, default: Any = "") -> Cell:
    """A cell with the value at `path` as it is, or `default`."""

    def cell(obj: Json, _now: datetime) -> Any:
        value = dig(obj, *path)
        return default if value is None else value

    return cell


def count(*path: str) -> Cell:
    """A cell with the number of entries of the list or map at `path`."""
    return lambda obj, _now: len(dig(obj, *path) or ())


def column(
    name: str, cell: Cell, *, wide: bool = False, kind: str = "string", text_format: str = "", description: str = ""
) -> Column:
    priority = 1 if wide else 0
    return Column(name=name, type=kind, format=text_format, priority=priority, cell=cell, description=description)


# The descriptions of the fields in Kubernetes' ObjectMeta.
_NAME_TEXT = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a "
    "client to request the generation of an appropriate name automatically. Name is primarily intended for creation "
    "idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
_CREATED_TEXT = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed "
    "to be set in happens-before order across separate operations. Clients may not set this value. It is represented "
    "in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)

NAME = column("Name", name_cell, text_format="name", description=_NAME_TEXT)
AGE = column("Age", age_cell, description=_CREATED_TEXT)
CREATED_AT = column("Created At", created_cell, kind="date", description=_CREATED_TEXT)
DEFAULT_COLUMNS: Sequence[Column] = (NAME, AGE)
"""For kinds without columns of their own."""


def labels_text(labels: Mapping[str, str] | None) -> str:
    """`a=b,c=d` in order of the keys, or `<none>`."""
    if not labels:
        return NONE
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels))


def selector_text(selector: Json | None) -> str:
    """A label selector object in the grammar of `-l`: `a=b,c in (d,e),!f`, or `<none>`."""
    if not selector:
        return NONE
    terms = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    terms += [_expression_text(expression) for expression in selector.get("matchExpressions") or ()]
    return ",".join(sorted(terms)) or NONE


def _expression_text(expression: Json) -> str:
    key = expression.get("key", "")
    values = ",".join(sorted(expression.get("values") or ()))
    match expression.get("operator"):
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return str(key)


def containers_of(*path: str) -> tuple[Column, Column]:
    """The wide columns with the names and images of the containers at `path`."""

    def joined(key: str) -> Cell:
        return lambda obj, _now: ",".join(str(item.get(key, "")) for item in dig(obj, *path) or ())

    return column("Containers", joined("name"), wide=True), column("Images", joined("image"), wide=True)


def selector_column(*path: str) -> Column:
    return column("Selector", lambda obj, _now: selector_text(dig(obj, *path)), wide=True)


_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def access_modes_text(modes: Sequence[str] | None) -> str:
    """Access modes in kubectl's short form, each once, in a fixed order."""
    given = set(modes or ())
    return ",".join(short for mode, short in _MODES.items() if mode in given)
