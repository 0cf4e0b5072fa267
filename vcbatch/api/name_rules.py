"""Name rules of Kubernetes with their messages. Source: k8s.io/apimachinery `pkg/util/validation`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"


def regex_error(message: str, pattern: str, *examples: str) -> str:
    """`MESSAGE (e.g. 'a',  or 'b', regex used for validation is 'P')`, with the two spaces Kubernetes writes."""
    text = ",  or ".join(f"'{example}'" for example in examples)
    return f"{message} (e.g. {text}, regex used for validation is '{pattern}')"


def too_long(maximum: int, *, unit: str = "characters") -> str:
    """The error for a name of more than `maximum` characters."""
    return f"must be no more than {maximum} {unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """The maximum length of a name in bytes, its pattern, and Kubernetes' messages for both."""

    longest: int
    pattern: str
    message: str
    examples: tuple[str, ...]
    unit: str = "characters"
    """The unit of the length in the message."""

    def matches(self, name: str) -> bool:
        return re.fullmatch(self.pattern, name) is not None

    @property
    def misspelt(self) -> str:
        return regex_error(self.message, self.pattern, *self.examples)

    def errors(self, name: str) -> list[str]:
        found = [too_long(self.longest, unit=self.unit)] if len(name.encode()) > self.longest else []
        return found if self.matches(name) else [*found, self.misspelt]


_DNS_SUBDOMAIN = _Rule(
    longest=253,
    pattern=rf"{_LABEL}(\.{_LABEL})*",
    message="a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    examples=("example.com",),
)
_SEARCH_LABEL = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_DNS_SEARCH = _Rule(
    longest=253,
    pattern=rf"_?{_SEARCH_LABEL}(\._?{_SEARCH_LABEL})*",
    message="a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', "
    "and must start and end with an alphanumeric character",
    examples=("example.com",),
)
_DNS_LABEL = _Rule(
    longest=63,
    pattern=_LABEL,
    message="a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character",
    examples=("my-name", "123-abc"),
)
_DNS1035_LABEL = _Rule(
    longest=63,
    pattern="[a-z]([-a-z0-9]*[a-z0-9])?",
    message="a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character",
    examples=("my-name", "abc-123"),
)
_QUALIFIED_NAME = _Rule(
    longest=63,
    pattern=_QUALIFIED,
    message="must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character",
    examples=("MyName", "my.name", "123-abc"),
    unit="bytes",
)
_LABEL_VALUE = _Rule(
    longest=63,
    pattern=f"({_QUALIFIED})?",
    message="a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "
    "must start and end with an alphanumeric character",
    examples=("MyValue", "my_value", "12345"),
    unit="bytes",
)
_CONFIG_KEY = _Rule(
    longest=253,
    pattern="[-._a-zA-Z0-9]+",
    message="a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    examples=("key.name", "KEY_NAME", "key-name"),
)


def _masked(name: str, *, prefix: bool) -> str:
    """The name as it is checked: a generateName may end in "-", since a suffix follows."""
    return name[:-1] + "a" if prefix and len(name) > 1 and name.endswith("-") else name


def dns_subdomain(name: str, *, prefix: bool = False) -> Sequence[str]:
    """Errors of an object name: 253 characters, labels joined by dots."""
    return _DNS_SUBDOMAIN.errors(_masked(name, prefix=prefix))


def dns_search(name: str) -> Sequence[str]:
    """Errors of a search domain of a resolver, which is an object name that may have underscores."""
    return _DNS_SEARCH.errors(name)


def dns_label(name: str, *, prefix: bool = False) -> Sequence[str]:
    """Errors of a host name: 63 characters of lower-case letters, digits and `-`."""
    name = _masked(name, prefix=prefix)
    found = _DNS_LABEL.errors(name)
    if not _DNS_LABEL.matches(name) and _DNS_SUBDOMAIN.matches(name):
        found[-1] = "must not contain dots"  # the short message, for a text that would be a valid name elsewhere
    return found


def dns1035_label(name: str, *, prefix: bool = False) -> Sequence[str]:
    """Errors of the older kind of host name, which has to start with a letter."""
    return _DNS1035_LABEL.errors(_masked(name, prefix=prefix))


def qualified_name(value: str) -> Sequence[str]:
    """Errors of a label or annotation key: an optional DNS prefix, a slash, and a name."""
    # The same few keys and resources occur again and again. Long ones, which rarely recur, aren't cached.
    return _kept_qualified_name(value) if len(value) <= _LONGEST_KEPT else _qualified_name(value)


_LONGEST_KEPT: Final = 64


@lru_cache(maxsize=4096)
def _kept_qualified_name(value: str) -> tuple[str, ...]:
    return tuple(_qualified_name(value))


def _qualified_name(value: str) -> list[str]:
    if value.count("/") > 1:
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_QUALIFIED_NAME.misspelt} {optional}"]
    prefix, slash, name = value.rpartition("/")
    found: list[str] = []
    if slash:
        errors = dns_subdomain(prefix) if prefix else ["must be non-empty"]
        found += [f"prefix part {error}" for error in errors]
    if not name:
        found.append("name part must be non-empty")
    return [*found, *(f"name part {error}" for error in _QUALIFIED_NAME.errors(name))]


def label_value(value: str) -> Sequence[str]:
    """Errors of a label's value."""
    return _LABEL_VALUE.errors(value)


def path_segment(name: str, *, prefix: bool = False) -> Sequence[str]:
    """Errors of a name as a segment of a URL path, the only rule for names of RBAC kinds."""
    errors: list[str] = []
    if not prefix and name in (".", ".."):
        errors.append(f"may not be '{name}'")
        return errors
    errors.extend(f"may not contain '{text}'" for text in ("/", "%") if text in name)
    return errors


def config_key(key: str) -> Sequence[str]:
    """Errors of a key of a ConfigMap or a Secret, which may become a file name."""
    found = _CONFIG_KEY.errors(key)
    if key == ".":
        found.append("must not be '.'")
    elif key == "..":
        found.append("must not be '..'")
    elif key.startswith(".."):
        found.append("must not start with '..'")
    return found
