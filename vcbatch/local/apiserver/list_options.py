"""The options of a list or a watch: selectors, pages, resourceVersions, validated as in Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vcbatch.local.apiserver.apierrors import FieldError, StatusError, forbidden_field, invalid, not_supported
from vcbatch.local.apiserver.engine import Engine
from vcbatch.local.apiserver.record import Record
from vcbatch.local.apiserver.registry import Served
from vcbatch.local.apiserver.request import first, flag, integer
from vcbatch.local.apiserver.selectors import FieldSelector, LabelSelector, parse_fields, parse_labels, value_at

_MATCH = "resourceVersionMatch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The objects of a collection that a request selects."""

    namespace: str | None = None
    labels: LabelSelector | None = None
    fields: FieldSelector | None = None

    def matches(self, entry: Served, record: Record, known: Mapping[str, str] | None = None) -> bool:
        """Whether the selectors match the record. `known` are its selectable fields, where they are available."""
        if self.labels is not None and not self.labels.matches(record.labels):
            return False
        if self.fields is None:
            return True
        values = {"metadata.name": record.name, "metadata.namespace": record.namespace}
        if any(term.path not in values for term in self.fields.terms):
            values.update(known if known is not None else selectable(entry, record))
        return self.fields.matches(lambda path: values.get(path, ""))


def selectable(entry: Served, record: Record) -> Mapping[str, str]:
    """The values of the fields that selectors of this kind may name."""
    obj = Engine.decode(entry, record)
    values = {path: value_at(obj, path) for path in entry.selectable_fields}
    if entry.field_values:
        values.update(entry.field_values(obj))
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    selection: Selection
    limit: int = 0
    continue_: str = ""
    version: str = ""
    match: str = ""
    watch: bool = False
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout: float | None = None


def parse_list_options(entry: Served, namespace: str | None, query: Mapping[str, Sequence[str]]) -> ListOptions:
    """Parse and validate as Kubernetes does; raises 400 and 422."""
    labels = parse_labels(first(query, "labelSelector"))
    fields = parse_fields(
        first(query, "fieldSelector"),
        known=entry.selectable_fields,
        named=entry.generated or bool(entry.selectable_fields),
    )
    # A list at any version is returned as a whole, as from a real server's cache.
    limit = 0 if first(query, "resourceVersion") == "0" else integer(query, "limit") or 0
    timeout = integer(query, "timeoutSeconds")
    options = ListOptions(
        selection=Selection(namespace=namespace, labels=labels, fields=fields),
        limit=max(0, limit),
        continue_=first(query, "continue"),
        version=first(query, "resourceVersion"),
        match=first(query, "resourceVersionMatch"),
        watch=flag(query, "watch"),
        bookmarks=flag(query, "allowWatchBookmarks"),
        initial_events=flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
        timeout=float(timeout) if timeout else None,
    )
    errors = _watch_errors(options) if options.watch else _list_errors(options)
    if errors:
        raise invalid(group="meta.k8s.io", kind="ListOptions", name="", errors=errors)
    return options


def _list_errors(options: ListOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    if options.match:
        if not options.version:
            errors.append(forbidden_field(_MATCH, f"{_MATCH} is forbidden unless resourceVersion is provided"))
        if options.continue_:
            errors.append(forbidden_field(_MATCH, f"{_MATCH} is forbidden when continue is provided"))
        if options.match not in ("Exact", "NotOlderThan"):
            errors.append(not_supported(_MATCH, options.match, ["Exact", "NotOlderThan", ""]))
        if options.match == "Exact" and options.version == "0":
            errors.append(forbidden_field(_MATCH, f'{_MATCH} "exact" is forbidden for resourceVersion "0"'))
    if options.initial_events is not None:
        errors.append(forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _watch_errors(options: ListOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    if options.initial_events is not None and options.match != "NotOlderThan":
        errors.append(forbidden_field(_MATCH, f"sendInitialEvents requires setting {_MATCH} to NotOlderThan"))
    if options.match:
        if options.initial_events is None:
            detail = f"{_MATCH} is forbidden for watch unless sendInitialEvents is provided"
            errors.append(forbidden_field(_MATCH, detail))
        if options.match != "NotOlderThan":
            errors.append(not_supported(_MATCH, options.match, ["NotOlderThan"]))
    if options.continue_:
        errors.append(forbidden_field(_MATCH, f"{_MATCH} is forbidden when continue is provided"))
    return errors


def parse_version(text: str) -> int:
    if not text.isdecimal() or len(text) > 19:
        raise StatusError(
            500,
            "",
            f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax',
        )
    return int(text)


def too_large(wanted: int, current: int) -> StatusError:
    return StatusError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {wanted}, current: {current}",
        {
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
        {"Retry-After": "1"},
    )
