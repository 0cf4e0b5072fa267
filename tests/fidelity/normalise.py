"""Gives one name to what no two servers have alike: uids, times, resource versions, addresses, random names.

Identity is kept: a uid is `UID-NAME` of the first object that had it, and the versions of one object count up from
`RV1`, so that an object that was made anew, and a write that changed nothing, can be told.
"""

from __future__ import annotations

import re
from typing import Any

Json = dict[str, Any]

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_PLAIN = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r"kube-api-access-[a-z0-9]{5}\b"), "kube-api-access-XXXXX"),
    (re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", re.DOTALL), "CERTIFICATE"),
    (re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+"), "TOKEN"),
    (re.compile(r"X509SHA256=[0-9a-f]+"), "X509SHA256=HASH"),
    (re.compile(r"JTI=[\w-]+"), "JTI=ID"),
    (re.compile(r"hash=[0-9A-Fa-f]+"), "hash=HASH"),
    (re.compile(r'"[0-9A-F]{64,}"'), "HASH"),
    (re.compile(r"\b(?:127\.0\.0\.1|localhost):\d+"), "SERVER"),
    (re.compile(r"\b10\.(?:0|96)\.\d{1,3}\.\d{1,3}\b"), "CLUSTER-IP"),
    (re.compile(r'(resourceVersion\\*":\\*")\d+'), r"\1RV"),
    (re.compile(r"(ResourceVersion in record \()\d+"), r"\1RV"),
    (re.compile(r"(too old resource version: \d+ \()\d+"), r"\1RV"),
    (re.compile(r"(Too large resource version: \d+, current: )\d+"), r"\1RV"),
)
_AGE = re.compile(r"(?:<invalid>|(?:\d+[smhd])+)")
_ADMINS = ("testbed-admin", "vcbatch-admin")


class Normaliser:
    """Normalises the answers of one group, in the order in which they come."""

    def __init__(self) -> None:
        self._uids: dict[str, str] = {}
        self._versions: dict[str, dict[str, str]] = {}
        self._generated: dict[str, str] = {}

    def value(self, value: Any, key: str = "", *, managed: bool = False) -> Any:
        """The normalised copy. Managed fields are dropped unless `managed`."""
        if isinstance(value, dict):
            return self._mapping(value, managed=managed)
        if isinstance(value, list):
            return [self.value(item, key, managed=managed) for item in value]
        if isinstance(value, str):
            return "AGE" if key == "cells" and _AGE.fullmatch(value) else self._string(value, key)
        if key == "nodePort" and isinstance(value, int) and value >= 30000:
            return "PORT"
        return value

    def _mapping(self, value: Json, *, managed: bool) -> Json:
        self._note_generated(value)
        uid, version = value.get("uid"), value.get("resourceVersion")
        if isinstance(uid, str) and uid not in self._uids and _UID.fullmatch(uid):
            self._name(uid, str(value.get("name", "")))
        result: Json = {}
        for key, item in value.items():
            if key == "managedFields" and not managed:
                continue
            if key == "columnDefinitions" and isinstance(item, list):
                # Words for people who read the document itself.
                item = [{name: part for name, part in column.items() if name != "description"} for column in item]
            if key == "resources" and isinstance(item, list) and all(isinstance(one, dict) for one in item):
                # Discovery lists custom resources in no order.
                item = sorted(item, key=lambda resource: str(resource.get("name", resource.get("resource", ""))))
            if key == "resourceVersion" and isinstance(item, str) and item:
                result[key] = self._version(uid, str(version)) if isinstance(uid, str) else self._known(item)
            else:
                result[self.text(key)] = self.value(item, key, managed=managed)
        return result

    def _note_generated(self, metadata: Json) -> None:
        prefix, name = metadata.get("generateName"), metadata.get("name")
        if isinstance(prefix, str) and isinstance(name, str) and prefix and name.startswith(prefix):
            self._generated[name] = prefix + "XXXXX"

    def _name(self, uid: str, name: str) -> str:
        name = self._generated.get(name, name)
        return self._uids.setdefault(uid, f"UID-{name}" if name else "UID")

    def _version(self, uid: str, version: str) -> str:
        known = self._versions.setdefault(uid, {})
        return known.setdefault(version, f"RV{len(known) + 1}")

    def _known(self, version: str) -> str:
        """A version that is not an object's own: of a list, or named in a precondition."""
        return "RV" if len(version) < 9 or not version.isdigit() else version

    def _string(self, value: str, key: str) -> str:
        if key == "continue" and value:
            return "CONTINUE"
        return self.text(value)

    def text(self, text: str) -> str:
        """The text with everything in it normalised that can be told by its looks."""
        for pattern, name in _PLAIN:
            text = pattern.sub(name, text)
        for admin in _ADMINS:
            text = text.replace(admin, "ADMIN")
        for name, masked in self._generated.items():
            text = text.replace(name, masked)
        return _UID.sub(lambda match: self._uids.get(match[0]) or self._name(match[0], ""), text)
