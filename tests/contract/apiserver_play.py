"""Plays recorded exchanges with a real kube-apiserver on the embedded server, in virtual time, and compares.

Both sides are normalised: what no two servers give alike (uids, times, resource versions, certificates) gets one name.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.virtual_time import SeededRandom, VirtualClock, VirtualTimeLoop
from vcbatch.local.apiserver.access import User
from vcbatch.local.apiserver.assembly import build
from vcbatch.local.apiserver.authn import impersonated
from vcbatch.local.apiserver.handler import Request
from vcbatch.local.apiserver.kernel import Kernel
from vcbatch.local.apiserver.request import parse_query
from vcbatch.local.apiserver.response import Response

Json = dict[str, Any]

ADMIN = User(name="admin", groups=("system:masters", "system:authenticated"))
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_RECORD = re.compile(r"ResourceVersion in record \(\d+\)")
_TOKEN_VOLUME = re.compile(r"kube-api-access-[a-z0-9]{5}\b")
_QUOTED_VERSION = re.compile(r'\\?"resourceVersion\\?":\\?"\d+\\?"')
_MANAGED = re.compile(r',?\\?"managedFields\\?":\[.*?\}\}\}\]|,?\\?"managedFields\\?":\[.*?\}\}\]')


@dataclass(frozen=True, slots=True)
class Outcome:
    """One exchange: what was asked, recorded and answered, and where they differ ("" for alike)."""

    index: int
    request: Json
    want: Json
    got: Json
    difference: str


class Player:
    """Plays one group in a namespace of its own."""

    def __init__(self, kernel: Kernel, group: str) -> None:
        self._kernel = kernel
        self._namespace = f"conf-{group}"
        self._saved: dict[str, Json] = {}

    async def prepare(self) -> None:
        await self._kernel.start()
        body = json.dumps({"metadata": {"name": self._namespace}, "kind": "Namespace", "apiVersion": "v1"})
        await self._send("POST", "/api/v1/namespaces", body.encode())
        await asyncio.sleep(0.2)

    def _fill(self, text: str) -> str:
        text = text.replace("{ns}", self._namespace)
        for name, obj in self._saved.items():
            metadata = obj.get("metadata", {})
            text = text.replace(f"{{rv:{name}}}", metadata.get("resourceVersion", ""))
            text = text.replace(f"{{uid:{name}}}", metadata.get("uid", ""))
        return text

    async def _send(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Response:
        split = urlsplit(path)
        response = await self._kernel.handler.handle(
            Request(
                method=method,
                path=split.path,
                query=parse_query(split.query),
                headers={"content-type": "application/json", **(headers or {})},
                body=body,
                user=impersonated(ADMIN, headers or {}),
            )
        )
        assert response is not None
        return response

    async def play(self, index: int, exchange: Json) -> Outcome:
        request, want = exchange["request"], exchange["want"]
        if "sleep" in request:
            await asyncio.sleep(request["sleep"])
        body = b""
        if "b" in request:
            text = request["b"] if request.get("raw") else json.dumps(request["b"], separators=(",", ":"))
            body = self._fill(text).encode()
        headers = {name.lower(): value for name, value in request.get("h", {}).items()}
        if "ct" in request:
            headers["content-type"] = request["ct"]
        response = await self._send(request["m"], self._fill(request["p"]), body, headers)
        got = await self._observe(request, response)
        if "save" in request and isinstance(response.body, bytes) and got["type"] == "application/json":
            self._saved[request["save"]] = json.loads(response.body)
        difference = "" if exchange.get("unstable") and got["code"] == want["code"] else compare(want, got)
        return Outcome(index, request, want, got, difference)

    async def _observe(self, request: Json, response: Response) -> Json:
        got: Json = {"code": response.code, "type": response.content_type.partition(";")[0]}
        warnings = [value for name, value in response.headers if name == "Warning"]
        if warnings:
            got["warnings"] = warnings
        if not isinstance(response.body, bytes):
            del got["type"]
            got["events"] = await self._events(response.body, request.get("watch", 0))
            return got
        if request.get("keysonly"):
            got["body"] = _keys(response.body)
        elif got["type"] == "application/json":
            got["body"] = self.normalise(json.loads(response.body))
        elif got["type"] == "text/plain":
            got["text"] = response.body.decode()
        return got

    async def _events(self, stream: AsyncIterator[bytes], seconds: float) -> list[Json]:
        events: list[Json] = []

        async def read() -> None:
            async for chunk in stream:
                events.extend(json.loads(line) for line in chunk.splitlines())

        try:
            await asyncio.wait_for(read(), seconds or None)
        except TimeoutError:
            pass
        shown = [self._event(event) for event in events]
        return [event for event in shown if event["object"].get("name") != "kube-root-ca.crt"]

    def _event(self, event: Json) -> Json:
        obj = event["object"]
        if event["type"] == "BOOKMARK":
            metadata = {"resourceVersion": "RV"}
            if obj["metadata"].get("annotations"):
                metadata["annotations"] = obj["metadata"]["annotations"]
            return {"type": "BOOKMARK", "object": {"kind": obj["kind"], "metadata": metadata}}
        if "metadata" not in obj or obj["kind"] in ("Status", "Table"):
            return self.normalise(event)
        metadata = obj["metadata"]
        shown = {"kind": obj["kind"], "name": metadata["name"], "labels": metadata.get("labels")}
        return {"type": event["type"], "object": shown}

    def normalise(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            if "generateName" in value and str(value.get("name", "")).startswith(value["generateName"]):
                value = {**value, "name": value["generateName"] + "XXXXX"}
            result = {name: self.normalise(item, name) for name, item in value.items() if name != "managedFields"}
            return _pruned(result)
        if isinstance(value, list):
            return [self.normalise(item) for item in value]
        if isinstance(value, str):
            return self._text(value, key)
        return value

    def _text(self, value: str, key: str) -> str:
        if key == "resourceVersion" and value:
            return "RV"
        if key == "serverAddress":
            return "SERVER"
        value = value.replace(self._namespace, "NS")
        if value == CERTIFICATE:
            return "CERTIFICATE"
        if key == "buildDate":
            return "TIME"
        value = _TOKEN_VOLUME.sub("kube-api-access-X", value)
        value = _RECORD.sub("ResourceVersion in record (RV)", value)
        return _TIME.sub("TIME", _UID.sub("UID", value))


def _keys(body: bytes) -> list[str]:
    try:
        return sorted(json.loads(body))
    except ValueError:
        return []


def _pruned(obj: Json) -> Json:
    """Both sides without what neither needs to have alike: descriptions of columns, and quoted managed fields."""
    if obj.get("kind") == "Table" and isinstance(obj.get("columnDefinitions"), list):
        obj["columnDefinitions"] = [
            {name: item for name, item in column.items() if name != "description"}
            for column in obj["columnDefinitions"]
        ]
    return obj


def _canonical(value: Any) -> Any:
    """Numbers in texts that no two servers share, on the recorded side."""
    if isinstance(value, dict):
        # The hash of a custom resource is of its group's name, which is another one in every run.
        return {key: "HASH" if key == "storageVersionHash" else _canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if isinstance(value, str):
        value = _RECORD.sub("ResourceVersion in record (RV)", value)
        value = _QUOTED_VERSION.sub("resourceVersion:RV", value)
        return _MANAGED.sub("", value)
    return value


def compare(want: Json, got: Json) -> str:
    """The first difference, as a path and both values; "" where the answers are alike."""
    for key in ("code", "warnings", "events", "type", "text", "body"):
        left, right = _canonical(want.get(key)), _canonical(got.get(key))
        if key == "text" and left is not None:
            if right is None or not str(right).startswith(left):
                return f"text: want {left!r}, got {right!r}"
        elif key in want or (key in ("warnings", "events")):
            difference = _differ(left, right, key)
            if difference:
                return difference
    return ""


def _differ(want: Any, got: Any, path: str) -> str:
    if isinstance(want, dict) and isinstance(got, dict):
        for key in sorted({*want, *got}):
            if key not in want:
                return f"{path}.{key}: not wanted, got {json.dumps(got[key])[:1500]}"
            if key not in got:
                return f"{path}.{key}: missing, want {json.dumps(want[key])[:1500]}"
            difference = _differ(want[key], got[key], f"{path}.{key}")
            if difference:
                return difference
        return ""
    if isinstance(want, list) and isinstance(got, list):
        for index, (left, right) in enumerate(zip(want, got, strict=False)):
            difference = _differ(left, right, f"{path}[{index}]")
            if difference:
                return difference
        if len(want) != len(got):
            return f"{path}: want {len(want)} items, got {len(got)}: {json.dumps(want)[:700]} / {json.dumps(got)[:700]}"
        return ""
    if want == got and isinstance(want, bool) is isinstance(got, bool):
        return ""
    return f"{path}:\n    want {json.dumps(want)}\n    got  {json.dumps(got)}"


def groups(folder: Path) -> list[str]:
    return sorted(path.stem for path in (folder / "apiserver").glob("*.json"))


def play_group(folder: Path, group: str) -> Sequence[Outcome]:
    """All exchanges of a group, on a server of its own."""
    exchanges = json.loads((folder / "apiserver" / f"{group}.json").read_text())["exchanges"]
    loop = VirtualTimeLoop()

    async def run() -> list[Outcome]:
        kernel = build(clock=VirtualClock(), random=SeededRandom(1), root_ca=CERTIFICATE)
        player = Player(kernel, group)
        await player.prepare()
        try:
            return [await player.play(index, exchange) for index, exchange in enumerate(exchanges)]
        finally:
            await kernel.stop()

    try:
        return loop.run_until_complete(run())
    finally:
        loop.close()
