"""What a server says to a sample and its variants, short enough to keep: a refusal by its causes, an object by how it
differs from the answer to the sample itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.fidelity.kinds.variants import Sample, changes, variants

Json = dict[str, Any]
Send = Callable[[str, str, Json], tuple[int, list[str], Any]]
"""(method, path, body) -> (code, warnings, decoded answer)"""

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_TOKEN_VOLUME = re.compile(r"kube-api-access-[a-z0-9]{5}\b")
_CLUSTER_ADDRESS = re.compile(r"\b10\.(0|96)\.\d+\.\d+\b(?!/)")
_CLUSTER_RANGE = re.compile(r"\b10\.(0|96)\.0\.0/16\b")
_COUNTED = ("ResourceQuota", "PodDisruptionBudget")
"""Kinds whose status is counted soon after they are stored, so that their version changes."""
_GENERATED = re.compile(r'"generateName": "([^"]*)"')
_POD_SPEC_POINTER = re.compile(r"0xc[0-9a-f]+")


class Normaliser:
    """Gives one name to what no two servers have alike."""

    def __init__(self, namespace: str, sent: Json) -> None:
        self._namespace = namespace
        self._given = json.dumps(sent)
        self._prefixes = [prefix for prefix in _GENERATED.findall(self._given) if prefix]

    def body(self, value: Any, key: str = "") -> Any:
        """The value with uids, times, versions, addresses and generated names replaced."""
        if isinstance(value, Mapping):
            if value.get("generateName") and str(value.get("name", "")).startswith(value["generateName"]):
                value = {**value, "name": value["generateName"] + "XXXXX"}
            return {name: self.body(item, name) for name, item in value.items() if name != "managedFields"}
        if isinstance(value, list):
            return [self.body(item, key) for item in value]
        if key in ("nodePort", "healthCheckNodePort") and value and f'"{key}": {value}' not in self._given:
            return "PORT"
        return self.text(value, key) if isinstance(value, str) else value

    def text(self, value: str, key: str = "") -> str:
        if key == "resourceVersion" and value:
            return "RV"
        value = value.replace(self._namespace, "NS")
        for prefix in self._prefixes:
            value = re.sub(re.escape(prefix) + r"[a-z0-9]{5}\b", f"{prefix}XXXXX", value)
        value = _TOKEN_VOLUME.sub("kube-api-access-X", _UID.sub("UID", value))
        value = _POD_SPEC_POINTER.sub("POINTER", _CLUSTER_RANGE.sub("RANGE", value))
        value = _TIME.sub(lambda match: match[0] if match[0] in self._given else "TIME", value)
        return _CLUSTER_ADDRESS.sub(lambda match: match[0] if match[0] in self._given else "ADDRESS", value)


def answers(sample: Sample, send: Send, namespace: str) -> Iterator[tuple[str, Json]]:
    """The answers to dry-run creates of the sample and of each variant, by what was sent."""
    path = sample.path.replace("{ns}", namespace)
    base: Json | None = None
    for variant in variants(sample):
        body = _filled(variant.object, namespace)
        code, warnings, answer = send("POST", f"{path}?dryRun=All", body)
        shown = Normaliser(namespace, body).body(answer)
        if base is None:
            assert code < 300, f"{sample.name} is refused: {answer}"
            base = {} if "reviews" in path else shown
            yield variant.label, {"code": code, "warnings": warnings, "body": shown}
        else:
            yield variant.label, _short(code, warnings, shown, base)


def replacements(sample: Sample, send: Send, namespace: str) -> Iterator[tuple[str, Json]]:
    """The answers to dry-run updates of the stored sample, one for each of its fields and each change of it."""
    path = sample.path.replace("{ns}", namespace)
    code, _, stored = send("POST", path, _filled(sample.object, namespace))
    assert code < 300, f"{sample.name} is refused: {stored}"
    place = f"{path}/{stored['metadata']['name']}"
    base = Normaliser(namespace, stored).body(stored)
    for change in changes(sample, stored):
        if not change.object:
            yield change.label, "not stored"
            continue
        counted = sample.object["kind"] in _COUNTED
        code, warnings, answer = _replaced(send, place, change.object, counted=counted)
        shown = Normaliser(namespace, change.object).body(answer)
        if counted and code < 300:
            shown["status"] = base["status"]
        yield change.label, _short(code, warnings, shown, base)
    unheld = {**stored, "metadata": {**stored["metadata"], "finalizers": []}}
    send("PUT", place, unheld)
    send("DELETE", f"{place}?gracePeriodSeconds=0", {})


def _replaced(send: Send, place: str, body: Json, *, counted: bool) -> tuple[int, list[str], Any]:
    """The answer to a dry-run update; of what is `counted`, one that no controller came in between of."""
    if not counted:
        return send("PUT", f"{place}?dryRun=All", body)
    while True:
        version = _version(send, place)
        body["metadata"]["resourceVersion"] = version
        answer = send("PUT", f"{place}?dryRun=All", body)
        if answer[0] != 409 or _version(send, place) == version:
            return answer


def _version(send: Send, place: str) -> str:
    return str(send("GET", place, {})[2]["metadata"]["resourceVersion"])


def _filled(obj: Json, namespace: str) -> Json:
    return json.loads(json.dumps(obj).replace("{ns}", namespace))


def _short(code: int, warnings: list[str], answer: Any, base: Json) -> Json:
    result: Json = {"code": code}
    if warnings:
        result["warnings"] = warnings
    if code >= 300:
        result |= refusal(answer)
    else:
        result["changes"] = dict(_changes(base, answer, ""))
    return result


def refusal(status: Any) -> Json:
    """A Status without what follows from the rest of it."""
    if not isinstance(status, Mapping) or status.get("kind") != "Status":
        return {"body": status}
    details = status.get("details") or {}
    causes = details.get("causes") or []
    result: Json = {"reason": status.get("reason", "")}
    if not causes:
        return {**result, "message": status.get("message", "")}
    lines = [f"{cause.get('field', '')}: {cause['message']}" for cause in causes]
    result["causes"] = sorted(f"{cause.get('reason', '')} {line}" for cause, line in zip(causes, lines, strict=True))
    head = status.get("message", "").partition(" is invalid: ")[0]
    unique = list(dict.fromkeys(lines))
    reported = unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
    result["message"] = head if status.get("message") == f"{head} is invalid: {reported}" else status.get("message")
    return result


def _changes(before: Any, after: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Each place where they differ, and what is there afterwards ("gone" for nothing)."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            place = f"{path}.{key}".removeprefix(".")
            if key not in after:
                yield place, "gone"
            elif key not in before:
                yield place, after[key]
            else:
                yield from _changes(before[key], after[key], place)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (left, right) in enumerate(zip(before, after, strict=True)):
            yield from _changes(left, right, f"{path}[{index}]")
    elif before != after or isinstance(before, bool) is not isinstance(after, bool):
        yield path, after
