"""What a request asks for: its path, options, media types, and the object in its body."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote

import msgspec

from vcbatch.local.apiserver import gojson, yaml
from vcbatch.local.apiserver.errors import (
    FieldError,
    StatusError,
    bad_request,
    invalid,
    not_supported,
    unsupported_media_type,
)

Json = dict[str, Any]

BODY_LIMIT = 3 * 1024 * 1024
_QUERY_FIELDS = 4096  # the words of a command that is run in a pod are parameters
JSON_TYPE = "application/json"
YAML_TYPE = "application/yaml"
PROTOBUF_TYPE = "application/vnd.kubernetes.protobuf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A path below /api or /apis, taken apart. "" stands for what the path doesn't have."""

    group: str
    version: str
    namespace: str = ""
    plural: str = ""
    name: str = ""
    subresource: str = ""


def parse_path(path: str) -> Target | None:
    """The target of a resource path, or None for any other path (discovery, /version, nonsense).

    `/namespaces/NAME` and `/namespaces/NAME/status|finalize` are the namespace itself.
    """
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    rest = [unquote(part) for part in rest]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    return Target(
        group=group,
        version=version,
        namespace=namespace,
        plural=rest[0],
        name=name,
        subresource="/".join(rest[2:]),
    )


def parse_query(raw: bytes | str) -> Mapping[str, Sequence[str]]:
    text = raw.decode("latin-1") if isinstance(raw, bytes) else raw
    if not text:
        return {}
    try:
        return parse_qs(text, keep_blank_values=True, max_num_fields=_QUERY_FIELDS)
    except ValueError:
        raise bad_request(f"the query has more than {_QUERY_FIELDS} parameters") from None


def first(query: Mapping[str, Sequence[str]], name: str) -> str:
    values = query.get(name)
    return values[0] if values else ""


def flag(query: Mapping[str, Sequence[str]], name: str) -> bool:
    """A boolean parameter as Go reads it: present and anything but false or 0."""
    values = query.get(name)
    return bool(values) and values[0].lower() not in ("false", "0")


def integer(query: Mapping[str, Sequence[str]], name: str) -> int | None:
    text = first(query, name)
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """dryRun, fieldValidation and fieldManager of a write."""

    dry_run: bool = False
    field_validation: str = "Warn"
    field_manager: str = ""


def write_options(query: Mapping[str, Sequence[str]], kind: str) -> WriteOptions:
    """Parsed and checked; `kind` (CreateOptions, …) is named in a refusal."""
    errors: list[FieldError] = []
    dry_run = [value for value in query.get("dryRun", ()) if value]
    errors += [not_supported("dryRun", value, ["All"]) for value in dry_run if value != "All"]
    validation = first(query, "fieldValidation")
    if validation not in ("", "Ignore", "Strict", "Warn"):
        errors.append(not_supported("fieldValidation", validation, ["", "Ignore", "Strict", "Warn"][1:]))
    manager = first(query, "fieldManager")
    if len(manager.encode()) > 128:
        errors.append(
            FieldError(
                reason="FieldValueTooLong", field="fieldManager", message="Too long: may not be more than 128 bytes"
            )
        )
    if errors:
        raise invalid(group="meta.k8s.io", kind=kind, name="", errors=errors)
    return WriteOptions(dry_run=bool(dry_run), field_validation=validation or "Warn", field_manager=manager)


@dataclass(frozen=True, slots=True)
class Accepted:
    """The form the answer takes: media type, and "", "Table", "PartialObjectMetadata" or its List."""

    media_type: str = JSON_TYPE
    transform: str = ""


_PLAIN = Accepted()
_TRANSFORMS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


def negotiate(accept: str, *, listing: bool, custom: bool) -> Accepted:
    """The first form of an Accept header that can be had; 406 where there is none."""
    if not accept or accept in ("*/*", JSON_TYPE):
        return _PLAIN
    for clause in accept.split(","):
        media, *raw = (part.strip() for part in clause.split(";"))
        parameters = dict(part.split("=", 1) for part in raw if "=" in part)
        transform = parameters.get("as", "")
        if transform:
            known = transform in _TRANSFORMS and parameters.get("g", "") == "meta.k8s.io"
            if not known or parameters.get("v", "") != "v1":
                continue
            if transform != "Table" and transform.endswith("List") is not listing:
                continue
        if media in (JSON_TYPE, "*/*", "application/*"):
            return Accepted(JSON_TYPE, transform)
        if media in (YAML_TYPE, "application/x-yaml", "text/yaml"):
            return Accepted(YAML_TYPE, transform)
    available = [JSON_TYPE, YAML_TYPE]
    if not custom:
        available.append(PROTOBUF_TYPE)
    if listing:
        available.append(f"{JSON_TYPE};stream=watch")
        if not custom:
            available.append(f"{PROTOBUF_TYPE};stream=watch")
    raise StatusError(
        406,
        "NotAcceptable",
        "406: Not Acceptable\n\nAvailable representations: " + ", ".join(available),
        {"": None},
    )


@dataclass(frozen=True, slots=True)
class Body:
    """A decoded body and the faults that strict decoding reports of its text (`duplicate field "a"`)."""

    value: Any
    faults: Sequence[str] = ()


def check_depth(value: Any, body: bytes) -> None:
    """400 for a body that nests deeper than any object does: what walks objects does it by recursion."""
    if body.count(b"{") + body.count(b"[") <= yaml.DEPTH_LIMIT:
        return
    level = [value]
    for _ in range(yaml.DEPTH_LIMIT):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node if isinstance(node, list) else ())
            if isinstance(child, (dict, list))
        ]
        if not level:
            return
    raise bad_request(f"the body nests deeper than {yaml.DEPTH_LIMIT} levels")


_decode_json = msgspec.json.Decoder().decode
_encode_json = msgspec.json.Encoder().encode


def duplicates(body: bytes) -> list[str]:
    """Keys that come twice in one object, as dotted paths. Go keeps the last value, as we do."""
    found: list[tuple[dict[str, Any], str]] = []

    def pairs(items: list[tuple[str, Any]]) -> Json:
        result: Json = {}
        for key, value in items:
            if key in result:
                found.append((result, key))
            result[key] = value
        return result

    root = json.loads(body, object_pairs_hook=pairs)
    if not found:
        return []
    paths: dict[int, str] = {}

    def walk(node: Any, path: str) -> None:
        if isinstance(node, dict):
            paths[id(node)] = path
            for key, value in node.items():
                walk(value, f"{path}.{key}" if path else key)
        elif isinstance(node, list):
            for index, value in enumerate(node):
                walk(value, f"{path}[{index}]")

    walk(root, "")
    faults: list[str] = []
    for owner, key in found:
        path = paths.get(id(owner), "")
        fault = f'duplicate field "{path}.{key}"' if path else f'duplicate field "{key}"'
        if fault not in faults:
            faults.append(fault)
    return faults


def _summary(body: bytes) -> str:
    """The start of an unreadable body as Kubernetes quotes it."""
    if not body:
        return "<empty>"
    text = body[:30].decode("utf-8", "replace") if body.startswith(b"{") else body[:30].hex()
    return text + " ..." if len(body) > 30 else text


def missing_kind(kind: str, body: bytes) -> StatusError:
    """400 for a custom object without a kind."""
    text = body.decode("utf-8", "replace")
    return bad_request(
        f"the object provided is unrecognized (must be of type {kind}): "
        f"Object 'Kind' is missing in '{text}' ({_summary(body)})"
    )


def _unrecognized(kind: str, fault: str, body: bytes) -> StatusError:
    return bad_request(
        f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; "
        f"json parse error: {fault} ({_summary(body)})"
    )


def _from_json(body: bytes, kind: str) -> Body:
    try:
        value = _decode_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        fault = gojson.syntax_fault(body) or str(error)
        raise _unrecognized(kind, fault, body) from None
    except RecursionError:
        raise bad_request("the body nests too deeply") from None
    if not isinstance(value, dict):
        if value is None:
            return Body({})
        raise _unrecognized(
            kind,
            f"json: cannot unmarshal {gojson.kind_of(value)} into Go value of type struct "
            '{ APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }',
            body,
        )
    for name in ("apiVersion", "kind"):
        if not isinstance(value.get(name, ""), str) and value[name] is not None:
            fault = f"json: cannot unmarshal {gojson.kind_of(value[name])} into Go struct field .{name} of type string"
            raise _unrecognized(kind, fault, body)
    check_depth(value, body)
    # A text that encodes back to itself has no key twice; most clients send one.
    return Body(value, () if _encode_json(value) == body else duplicates(body))


def _from_yaml(body: bytes, kind: str) -> Body:
    value, faults = yaml.load(body)
    if value is None:
        raise _unrecognized(kind, "unexpected end of JSON input", b"")
    if not isinstance(value, dict):
        raise _unrecognized(
            kind,
            f"json: cannot unmarshal {gojson.kind_of(value)} into Go value of type struct "
            '{ APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }',
            _encode_json(value),
        )
    return Body(value, faults)


def decode_body(
    body: bytes, content_type: str, *, kind: str, custom: bool, protobuf: Callable[[bytes], Json] | None
) -> Body:
    """The object in a request's body, by its media type; 415 and 400 in Kubernetes' words."""
    media = content_type.partition(";")[0].strip().lower()
    if media in ("", JSON_TYPE):
        return _from_json(body, kind)
    if media in (YAML_TYPE, "application/x-yaml"):
        return _from_yaml(body, kind)
    if media == PROTOBUF_TYPE and protobuf and not custom:
        return Body(protobuf(body))
    accepted = [JSON_TYPE, YAML_TYPE]
    raise unsupported_media_type(accepted if custom else [*accepted, PROTOBUF_TYPE])
