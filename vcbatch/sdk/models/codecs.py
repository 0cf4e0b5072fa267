"""How values of fields are read from and written to JSON."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, Final, TypeVar, cast

from vcbatch.sdk.models.wire import Codec, Quantity, Unreadable, Wire

W = TypeVar("W", bound=Wire)
T = TypeVar("T")


def _checked(check: Callable[[Any], bool], write: Callable[[Any], Any] = lambda value: value) -> Codec[Any]:
    def read(raw: Any) -> Any:
        if not check(raw):
            raise Unreadable
        return raw

    return Codec(read, write)


def _is_count(raw: Any) -> bool:
    return isinstance(raw, int) and not isinstance(raw, bool)


def _is_quantity(raw: Any) -> bool:
    return isinstance(raw, str | int | float) and not isinstance(raw, bool)


def _write_count(value: Any) -> Any:
    """Integers of any library's type; the server validates other values."""
    return operator.index(value) if hasattr(value, "__index__") and not isinstance(value, bool) else value


def _write_quantity(value: Any) -> Any:
    """Kubernetes accepts integers and strings."""
    return (
        float.__repr__(float(value))
        if isinstance(value, Real) and not hasattr(value, "__index__")
        else _write_count(value)
    )


TEXT: Final[Codec[str]] = _checked(lambda raw: isinstance(raw, str), str)
COUNT: Final[Codec[int]] = _checked(_is_count, _write_count)
FLAG: Final[Codec[bool]] = _checked(lambda raw: isinstance(raw, bool))
RAW: Final[Codec[Mapping[str, Any]]] = _checked(lambda raw: isinstance(raw, dict), copy.deepcopy)


def _list_of(raw: Any) -> list[Any]:
    if not isinstance(raw, list):
        raise Unreadable
    return cast("list[Any]", raw)


def _read_texts(raw: Any) -> tuple[str, ...]:
    return tuple(TEXT.read(entry) for entry in _list_of(raw))


def _write_texts(value: Sequence[str]) -> list[str]:
    if isinstance(value, str):
        raise TypeError(f"want a list of strings, got {value!r}")
    return [str(entry) for entry in value]


TEXTS: Final[Codec[Sequence[str]]] = Codec(_read_texts, _write_texts, many=True)


def map_of(codec: Codec[T]) -> Codec[Mapping[str, T]]:
    """A codec for objects all of whose values have the same codec."""

    def read(raw: Any) -> Mapping[str, T]:
        if not isinstance(raw, dict):
            raise Unreadable
        return {key: codec.read(value) for key, value in cast("dict[str, Any]", raw).items()}

    def write(value: Mapping[str, T]) -> dict[str, Any]:
        return {key: codec.write(entry) for key, entry in value.items()}

    return Codec(read, write)


QUANTITIES: Final[Codec[Mapping[str, Quantity]]] = map_of(_checked(_is_quantity, _write_quantity))
LABELS: Final[Codec[Mapping[str, str]]] = map_of(TEXT)


def one(model: type[W]) -> Codec[W]:
    """A codec for a nested model."""

    def read(raw: Any) -> W:
        if not isinstance(raw, dict):
            raise Unreadable
        return model.from_manifest(cast("dict[str, Any]", raw))

    return Codec(read, lambda value: value.to_manifest())


def many(model: type[W]) -> Codec[Sequence[W]]:
    """A codec for a list of nested models."""
    part = one(model)
    return Codec(
        lambda raw: tuple(part.read(entry) for entry in _list_of(raw)),
        lambda value: [entry.to_manifest() for entry in value],
        many=True,
    )


def _read_env(raw: Any) -> Mapping[str, str | Mapping[str, Any]]:
    """Read a list of variables. Raises `Unreadable` where a name occurs twice, since then the order decides."""
    env: dict[str, str | Mapping[str, Any]] = {}
    for entry in _list_of(raw):
        match entry:
            case {"name": str(name), "value": str(value), **rest} if not rest and name not in env:
                env[name] = value
            case {"name": str(name), "valueFrom": dict(), **rest} if not rest and name not in env:
                env[name] = entry["valueFrom"]
            case _:
                raise Unreadable
    return env


def _write_env(value: Mapping[str, str | Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"name": name, "valueFrom": copy.deepcopy(dict(entry))}
        if isinstance(entry, Mapping)
        else {"name": name, "value": str(entry)}
        for name, entry in value.items()
    ]


ENV: Final = Codec(_read_env, _write_env)
