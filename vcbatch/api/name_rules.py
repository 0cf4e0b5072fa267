"""Name rules of Kubernetes with their texts. Source: k8s.io/apimachinery `pkg/util/validation`."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_DNS1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"

_LABEL_RE = re.compile(_LABEL)
_SUBDOMAIN_RE = re.compile(_SUBDOMAIN)
_DNS1035_RE = re.compile(_DNS1035)
_QUALIFIED_RE = re.compile(_QUALIFIED)
_LABEL_VALUE_RE = re.compile(_LABEL_VALUE)


def regex_fault(message: str, pattern: str, *examples: str) -> str:
    """`MESSAGE (e.g. 'a',  or 'b', regex used for validation is 'P')`, with the two spaces Kubernetes writes."""
    text = ",  or ".join(f"'{example}'" for example in examples)
    return f"{message} (e.g. {text}, regex used for validation is '{pattern}')"


def too_long(maximum: int) -> str:
    """The fault of a name of more than `maximum` characters."""
    return f"must be no more than {maximum} characters"


def _masked(name: str, *, prefix: bool) -> str:
    """A generateName may end in "-", since a suffix follows."""
    return name[:-1] + "a" if prefix and len(name) > 1 and name.endswith("-") else name


def dns_subdomain(name: str, *, prefix: bool = False) -> Sequence[str]:
    """Faults of an object name: 253 characters, labels joined by dots."""
    name = _masked(name, prefix=prefix)
    faults: list[str] = []
    if len(name.encode()) > 253:
        faults.append(too_long(253))
    if not _SUBDOMAIN_RE.fullmatch(name):
        faults.append(
            regex_fault(
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
                "and must start and end with an alphanumeric character",
                _SUBDOMAIN.replace(r"\\", "\\"),
                "example.com",
            )
        )
    return faults


def dns_label(name: str, *, prefix: bool = False) -> Sequence[str]:
    """Faults of a host name: 63 characters of lower-case letters, digits and `-`."""
    name = _masked(name, prefix=prefix)
    faults: list[str] = []
    if len(name.encode()) > 63:
        faults.append(too_long(63))
    if not _LABEL_RE.fullmatch(name):
        if _SUBDOMAIN_RE.fullmatch(name):
            # A dotted name that would be a valid subdomain gets the short text.
            faults.append("must not contain dots")
        else:
            faults.append(
                regex_fault(
                    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
                    "and must start and end with an alphanumeric character",
                    _LABEL,
                    "my-name",
                    "123-abc",
                )
            )
    return faults


def dns1035_label(name: str, *, prefix: bool = False) -> Sequence[str]:
    """Faults of the older kind of host name, which starts with a letter."""
    name = _masked(name, prefix=prefix)
    faults: list[str] = []
    if len(name.encode()) > 63:
        faults.append(too_long(63))
    if not _DNS1035_RE.fullmatch(name):
        faults.append(
            regex_fault(
                "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
                "alphabetic character, and end with an alphanumeric character",
                _DNS1035,
                "my-name",
                "abc-123",
            )
        )
    return faults


def qualified_name(value: str) -> Sequence[str]:
    """Faults of a label or annotation key: an optional DNS prefix, a slash, and a name."""
    parts = value.split("/")
    faults: list[str] = []
    if len(parts) == 1:
        name = parts[0]
    elif len(parts) == 2:
        prefix, name = parts
        if not prefix:
            faults.append("prefix part must be non-empty")
        else:
            faults.extend(f"prefix part {fault}" for fault in dns_subdomain(prefix))
    else:
        return [
            "a qualified name "
            + regex_fault(
                "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
                "alphanumeric character",
                _QUALIFIED,
                "MyName",
                "my.name",
                "123-abc",
            )
            + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    if not name:
        faults.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        faults.append("name part " + too_long(63))
    if not _QUALIFIED_RE.fullmatch(name):
        faults.append(
            "name part "
            + regex_fault(
                "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
                "alphanumeric character",
                _QUALIFIED,
                "MyName",
                "my.name",
                "123-abc",
            )
        )
    return faults


def label_value(value: str) -> Sequence[str]:
    """Faults of a label's value."""
    faults: list[str] = []
    if len(value.encode()) > 63:
        faults.append(too_long(63))
    if not _LABEL_VALUE_RE.fullmatch(value):
        faults.append(
            regex_fault(
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "
                "must start and end with an alphanumeric character",
                _LABEL_VALUE,
                "MyValue",
                "my_value",
                "12345",
            )
        )
    return faults


def path_segment(name: str, *, prefix: bool = False) -> Sequence[str]:
    """Faults of a name as a part of a URL: all that RBAC kinds and leases of some clients hold names to."""
    faults: list[str] = []
    if not prefix and name in (".", ".."):
        faults.append(f"may not be '{name}'")
        return faults
    faults.extend(f"may not contain '{text}'" for text in ("/", "%") if text in name)
    return faults
