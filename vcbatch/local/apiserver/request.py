"""Parses a request: its path, options, media types, and the object in its body."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote

import msgspec

from vcbatch.api.loose import deeper_than
from vcbatch.local.apiserver import gojson, yaml
from vcbatch.local.apiserver.apierrors import (
    FieldError,
    StatusError,
    bad_request,
    invalid,
    invalid_value,
    not_supported,
    unsupported_media_type,
)

Json = dict[str, Any]

BODY_LIMIT = 3 * 1024 * 1024
_QUERY_FIELDS = 4096  # the words of a command that is run in a pod are parameters
JSON_TYPE = "application/json"
YAML_TYPE = "application/yaml"
PROTOBUF_TYPE = "application/vnd.kubernetes.protobuf"
PROTOBUF_MAGIC = b"k8s\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A parsed path below /api or /apis. "" for parts that the path doesn't have."""

    group: str
    version: str
    namespace: str = ""
    plural: str = ""
    name: str = ""
    subresource: str = ""


def parse_path(path: str) -> Target | None:
    """The target of a resource path, or None for any other path (discovery, /version, invalid ones).

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


_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
MAX_INT64 = 2**63 - 1


def go_integer(text: str) -> int:
    """A number as Go's `strconv.ParseInt` reads it, of 64 bits; 400 with its message."""
    if not _INTEGER.fullmatch(text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    value = int(text) if len(text) < 40 else MAX_INT64 + 1
    if not -MAX_INT64 - 1 <= value <= MAX_INT64:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return value


def integer(query: Mapping[str, Sequence[str]], name: str) -> int | None:
    text = first(query, name)
    return go_integer(text) if text else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """dryRun, fieldValidation and fieldManager of a write."""

    dry_run: bool = False
    field_validation: str = "Warn"
    field_manager: str = ""
    given_validation: str = ""

    def shown(self) -> Json:
        """The options in their wire format, without kind."""
        wire: Json = {
            "dryRun": ["All"] if self.dry_run else None,
            "fieldManager": self.field_manager,
            "fieldValidation": self.given_validation,
        }
        return {key: value for key, value in wire.items() if value}


def write_options(query: Mapping[str, Sequence[str]], kind: str) -> WriteOptions:
    """Parse and validate the options; `kind` (CreateOptions, …) is named in an error."""
    errors: list[FieldError] = []
    dry_run = [value for value in query.get("dryRun", ()) if value]
    if any(value != "All" for value in dry_run):
        errors.append(not_supported("dryRun", dry_run, ["All"]))
    validation = first(query, "fieldValidation")
    if validation not in ("", "Ignore", "Strict", "Warn"):
        errors.append(not_supported("fieldValidation", validation, ["", "Ignore", "Strict", "Warn"]))
    manager = first(query, "fieldManager")
    if len(manager.encode()) > 128:
        errors.append(
            FieldError(
                reason="FieldValueTooLong", field="fieldManager", message="Too long: may not be more than 128 bytes"
            )
        )
    unprintable = next((at for at, char in enumerate(manager) if not char.isprintable()), None)
    if unprintable is not None:
        detail = f"invalid character U+{ord(manager[unprintable]):04X} (at position {unprintable})"
        errors.append(invalid_value("fieldManager", manager, detail))
    if errors:
        raise invalid(group="meta.k8s.io", kind=kind, name="", errors=errors)
    return WriteOptions(
        dry_run=bool(dry_run),
        field_validation=validation or "Warn",
        field_manager=manager,
        given_validation=validation,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The form of the response: media type, "", "Table", "PartialObjectMetadata" or its List, and their version."""

    media_type: str = JSON_TYPE
    transform: str = ""
    version: str = "v1"


_PLAIN = Accepted()
_TRANSFORMS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
_STREAMED = f"only the following media types are accepted: {JSON_TYPE};stream=watch, {PROTOBUF_TYPE};stream=watch"
_ACCEPTED = f"only the following media types are accepted: {JSON_TYPE}, {YAML_TYPE}, {PROTOBUF_TYPE}"


def negotiate(accept: str, *, listing: bool, kind: str, watching: bool = False) -> Accepted:
    """The first supported form of an Accept header; 406 where there is none. `kind` is the internal name of the
    requested object or list (`core.ConfigMap`), for the error."""
    if not accept or accept in ("*/*", JSON_TYPE):
        return _PLAIN
    unmet = False
    for media, parameters in _clauses(accept):
        readable = _media_type(media)
        if watching and readable == YAML_TYPE:
            raise StatusError(406, "NotAcceptable", _STREAMED)
        unmet = unmet or readable != "" or media == PROTOBUF_TYPE
        transform = parameters.get("as", "")
        if not readable:
            continue
        if not transform:
            return Accepted(media_type=readable)
        version = parameters.get("v", "")
        if transform not in _TRANSFORMS or parameters.get("g") != "meta.k8s.io" or version not in ("v1", "v1beta1"):
            continue
        if transform != "Table" and not watching and transform.endswith("List") is not listing:
            what = "but the requested object is a list" if listing else "but the requested object is not a list"
            raise StatusError(406, "NotAcceptable", f"you requested {transform}, {what} (*{kind})")
        return Accepted(media_type=readable, transform=transform, version=version)
    if unmet or kind.startswith("unstructured."):
        raise StatusError(406, "NotAcceptable", _ACCEPTED)
    available = [JSON_TYPE, YAML_TYPE, PROTOBUF_TYPE]
    if listing:
        available += [f"{JSON_TYPE};stream=watch", f"{PROTOBUF_TYPE};stream=watch"]
    raise StatusError(
        406,
        "NotAcceptable",
        "406: Not Acceptable\n\nAvailable representations: " + ", ".join(available),
        {"": None},
    )


def error_type(accept: str) -> str:
    """The media type of an error response: the client's most preferred supported one, else JSON."""
    if "yaml" not in accept:
        return JSON_TYPE
    return next((found for media, _ in _clauses(accept) if (found := _media_type(media))), JSON_TYPE)


def _clauses(accept: str) -> list[tuple[str, dict[str, str]]]:
    """The media types of an Accept header with their parameters, the most preferred first."""
    found: list[tuple[str, dict[str, str]]] = []
    for clause in accept.split(","):
        media, *raw = (part.strip() for part in clause.split(";"))
        found.append((media, dict(part.split("=", 1) for part in raw if "=" in part)))
    return sorted(found, key=lambda one: -_quality(one[1].get("q", "1")))


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _media_type(media: str) -> str:
    if media in (JSON_TYPE, "*/*"):
        return JSON_TYPE
    return YAML_TYPE if media in (YAML_TYPE, "application/x-yaml", "text/yaml") else ""


@dataclass(frozen=True, slots=True)
class Body:
    """A decoded body and the errors that strict decoding reports for its text (`duplicate field "a"`)."""

    value: Any
    errors: Sequence[str] = ()
    raw: bytes = b""
    """The text itself, where an error may have to quote it."""


def check_depth(value: Any, *, text: bytes | None = None, what: str = "the body") -> None:
    """400 for JSON with more levels than any object has: functions that traverse objects are recursive. `text`: the
    source of the value, where that is available."""
    if text is not None and text.count(b"{") + text.count(b"[") <= yaml.DEPTH_LIMIT:
        return
    if deeper_than(value, yaml.DEPTH_LIMIT):
        raise bad_request(f"{what} nests deeper than {yaml.DEPTH_LIMIT} levels")


_decode_json = msgspec.json.Decoder().decode
_encode_json = msgspec.json.Encoder().encode


def duplicates(body: bytes) -> list[str]:
    """Duplicate keys of an object, as dotted paths. Go keeps the last value, as we do."""
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
    errors: list[str] = []
    for owner, key in found:
        path = paths.get(id(owner), "")
        error = f'duplicate field "{path}.{key}"' if path else f'duplicate field "{key}"'
        if error not in errors:
            errors.append(error)
    return errors


def summary(body: bytes) -> str:
    """The start of an invalid body as Kubernetes quotes it."""
    if not body:
        return "<empty>"
    text = body[:30].decode("utf-8", "replace") if body.startswith(b"{") else body[:30].hex()
    return text + " ..." if len(body) > 30 else text


def missing_kind(kind: str, body: bytes) -> StatusError:
    """400 for a custom object without a kind."""
    text = body.decode("utf-8", "replace")
    return bad_request(
        f"the object provided is unrecognized (must be of type {kind}): "
        f"Object 'Kind' is missing in '{text}' ({summary(body)})"
    )


def _unrecognized(kind: str, error: str, body: bytes) -> StatusError:
    text = f"couldn't get version/kind; json parse error: {error}"
    if not kind:
        return bad_request(text)
    return bad_request(f"the object provided is unrecognized (must be of type {kind}): {text} ({summary(body)})")


def _from_json(body: bytes, kind: str) -> Body:
    try:
        value = _decode_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        detail = gojson.syntax_error(body) or str(error)
        raise _unrecognized(kind, detail, body) from None
    except RecursionError:
        raise bad_request("the body nests too deeply") from None
    if not isinstance(value, dict):
        if value is None:
            return Body({}, (), body)
        raise _unrecognized(
            kind,
            f"json: cannot unmarshal {gojson.kind_of(value)} into Go value of type struct "
            '{ APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }',
            body,
        )
    for name in ("apiVersion", "kind"):
        if not isinstance(value.get(name, ""), str) and value[name] is not None:
            detail = f"json: cannot unmarshal {gojson.kind_of(value[name])} into Go struct field .{name} of type string"
            raise _unrecognized(kind, detail, body)
    check_depth(value, text=body)
    # A text that encodes back to itself has no duplicate key; most clients send one.
    return Body(value, () if _encode_json(value) == body else duplicates(body), body)


def _from_yaml(body: bytes, kind: str) -> Body:
    try:
        value, errors = yaml.load(body)
    except yaml.Unreadable as error:
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind}): yaml: {error} ({summary(body)})"
        ) from None
    if value is None:
        return Body({}, (), body)
    if not isinstance(value, dict):
        raise _unrecognized(
            kind,
            f"json: cannot unmarshal {gojson.kind_of(value)} into Go value of type struct "
            '{ APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }',
            body,
        )
    return Body(value, errors, _encode_json(value))


def decode_configuration(body: bytes) -> Body:
    """Decode the body of an apply patch, which is YAML or JSON."""
    prefix = "error decoding YAML: error "
    try:
        value, errors = yaml.load(body)
    except yaml.Unreadable as error:
        raise bad_request(f"{prefix}converting YAML to JSON: yaml: {error}") from None
    if value is None:
        return Body({})
    if not isinstance(value, dict):
        raise bad_request(
            f"{prefix}unmarshaling JSON: while decoding JSON: json: cannot unmarshal {gojson.kind_of(value)} into Go "
            "value of type map[string]interface {}"
        )
    check_depth(value, text=body)
    return Body(value, errors, body)


def decode_body(
    body: bytes, content_type: str, *, kind: str, custom: bool, protobuf: Callable[[bytes], Json] | None
) -> Body:
    """The object in a request's body, by its media type; 415 and 400 with Kubernetes' messages."""
    media, *parameters = (part.strip() for part in content_type.split(";"))
    media = media.lower()
    if any(part and "=" not in part for part in parameters):
        media = "unreadable"
    if media in ("", JSON_TYPE):
        return _from_json(body, kind)
    if media in (YAML_TYPE, "application/x-yaml"):
        return _from_yaml(body, kind)
    if media == PROTOBUF_TYPE and protobuf and not custom:
        if not body.startswith(PROTOBUF_MAGIC):
            raise bad_request(
                f"the object provided is unrecognized (must be of type {kind}): provided data does not appear to be a "
                f"protobuf message, expected prefix [107 56 115 0] ({summary(body)})"
            )
        return Body(protobuf(body))
    raise unsupported_media_type([JSON_TYPE, YAML_TYPE, PROTOBUF_TYPE])
