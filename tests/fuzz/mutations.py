"""Reviews made from good ones: a few values replaced, removed, doubled, moved or blown up, or the bytes spoiled."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from random import Random
from typing import Any

from vcbatch.api.model import Json

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**300, 1.5, -0.0, 1e308, "", " ", "\x00", "☃",
    "a" * 64, "a" * 254, "A", "-", "..", "../..", "a/b/c", "9" * 400, "9" * 5000 + "%",
    "1e9", "1e999999999", "1E-999999999", "0x10",
    "1Ki", "1.5Gi", "-1", "1n", "1e", "+", "0." + "0" * 300 + "1", "99999999999999999999Ei", "1h", "1h" * 100, "-1s",
    "∞", "NaN", "*/5 * * * *", "* * * * *", "@every 1s", "0 0 30 2 *", "TZ=x * * * * *", "(a+)+$", "[", "(?=a)",
    "a{1000}{1000}", "\\", "\\pL", "$(A)", "{{.}}", "%s%n", "'\";--", "<script>", "\ud7ff", "\U0001f4a9" * 20, "true",
    "null", "~0~1", "/-", "default", "root", "volcano", "*", "Running", "PodFailed", "RestartJob",
    "2026-01-01T00:00:00Z",
    [], {}, [None], [[]], [{}], {"": ""}, {"a": None}, {"\x00": {}}, {"name": "t"}, ["a", 1, None, {}], [[[[[[]]]]]],
)  # fmt: skip


def mutated(random: Random, review: Json, pool: list[Json]) -> bytes:
    """The body of a review that was good; `pool` has others, to take parts from."""
    made = copy.deepcopy(review)
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 5, 9))):
        random.choice(_MUTATIONS)(random, made, pool)
    body = _encoded(made)
    return _spoiled(random, body) if random.random() < 0.05 else body


def _encoded(review: Json) -> bytes:
    return json.dumps(review, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")


def _spoiled(random: Random, body: bytes) -> bytes:
    """Bytes that are no JSON any more, as a rule."""
    spoiled = bytearray(body)
    for _ in range(random.randint(1, 8)):
        at = random.randrange(len(spoiled))
        match random.randrange(4):
            case 0:
                spoiled[at] = random.randrange(256)
            case 1:
                del spoiled[at : at + random.randint(1, 50)]
            case 2:
                spoiled[at:at] = random.choice((b"[" * 3000, b'{"a":' * 3000, b"1e400", b"\xff\xfe", b"}", b'"', b","))
            case _:
                del spoiled[at:]
        if not spoiled:
            break
    return bytes(spoiled)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Everything inside as `(container, key)`, of which most lies below `request.object`."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting and len(found) < 5000:
        at = waiting.pop()
        keys: Any = list(at) if isinstance(at, dict) else range(len(at)) if isinstance(at, list) else ()
        for key in keys:
            found.append((at, key))
            waiting.append(at[key])
    return found


def _somewhere(random: Random, review: Json) -> tuple[Any, Any] | None:
    inside = review.get("request")
    parts = [inside.get("object"), inside.get("oldObject")] if isinstance(inside, dict) else []
    found = places(random.choice(parts)) if parts and random.random() < 0.97 else places(review)
    return random.choice(found) if found else None


def _replace(random: Random, review: Json, pool: list[Json]) -> None:
    if place := _somewhere(random, review):
        at, key = place
        at[key] = copy.deepcopy(random.choice(ODD))


def _remove(random: Random, review: Json, pool: list[Json]) -> None:
    if place := _somewhere(random, review):
        at, key = place
        del at[key]


def _repeat(random: Random, review: Json, pool: list[Json]) -> None:
    """An element of a list many times over, alike or with names of its own."""
    if (place := _somewhere(random, review)) and isinstance(place[0], list):
        at, key = place
        times, alike = random.choice((1, 2, 20, 200)), random.random() < 0.5
        for number in range(times):
            copied = copy.deepcopy(at[key])
            if not alike and isinstance(copied, dict) and "name" in copied:
                copied["name"] = f"n{number}"
            at.append(copied)


def _transplant(random: Random, review: Json, pool: list[Json]) -> None:
    """A part of another object in the place of a part of this one."""
    other = _somewhere(random, random.choice(pool))
    place = _somewhere(random, review)
    if other and place:
        place[0][place[1]] = copy.deepcopy(other[0][other[1]])


def _swap(random: Random, review: Json, pool: list[Json]) -> None:
    first, second = _somewhere(random, review), _somewhere(random, review)
    if first and second and first[0] is not second[0]:
        # Neither may come to hold itself.
        (one, key), (two, other) = first, second
        one[key], two[other] = copy.deepcopy(two[other]), copy.deepcopy(one[key])


def _add(random: Random, review: Json, pool: list[Json]) -> None:
    """A key that an object of the kind may have, with some value."""
    place, other = _somewhere(random, review), _somewhere(random, random.choice(pool))
    if place and isinstance(place[0], dict) and other and isinstance(other[1], str):
        place[0][other[1]] = copy.deepcopy(random.choice((random.choice(ODD), other[0][other[1]])))


def _wrap(random: Random, review: Json, pool: list[Json]) -> None:
    if place := _somewhere(random, review):
        at, key = place
        value = at[key]
        for _ in range(random.choice((1, 2, 30, 70))):
            value = [value] if random.random() < 0.5 else {"a": value}
        at[key] = value


def _lengthen(random: Random, review: Json, pool: list[Json]) -> None:
    if (place := _somewhere(random, review)) and isinstance(place[0][place[1]], str):
        place[0][place[1]] = place[0][place[1]][:100] * random.choice((2, 63, 253, 5000))


def _operation(random: Random, review: Json, pool: list[Json]) -> None:
    asked = review.get("request")
    if isinstance(asked, dict):
        asked["operation"] = random.choice(("CREATE", "UPDATE", "DELETE", "CONNECT", "", 7))
        if random.random() < 0.5:
            asked["oldObject"] = copy.deepcopy(random.choice(pool)["request"].get("object"))


Mutation = Callable[[Random, Json, list[Json]], None]
_MUTATIONS: tuple[Mutation, ...] = (
    _replace, _replace, _replace, _replace, _remove, _repeat, _transplant, _transplant, _swap, _add, _wrap, _lengthen,
    _operation,
)  # fmt: skip
