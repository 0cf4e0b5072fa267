"""The string formats that Kubernetes validates. Source: kube-openapi `pkg/validation/strfmt`."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
import uuid
from collections.abc import Callable, Mapping
from datetime import date
from urllib.parse import urlsplit

_RFC3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_DURATION = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))*")
_WORD_DURATION = re.compile(
    r"((\d+)\s*(years?|months?|weeks?|wks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s|"
    r"milliseconds?|millis?|ms|microseconds?|micros?|us|µs|μs|nanoseconds?|nanos?|ns)\s*)+"
)
_HOSTNAME = re.compile(r"[a-zA-Z0-9\u0080-\uffff]([-a-zA-Z0-9\u0080-\uffff]{0,61}[a-zA-Z0-9\u0080-\uffff])?")
_EMAIL = re.compile(r"[^\s@<>]+@[^\s@<>]+")
_MAC = re.compile(r"([0-9A-Fa-f]{2}([:-])[0-9A-Fa-f]{2}(\2[0-9A-Fa-f]{2}){4,6})|([0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def _date_time(text: str) -> bool:
    found = _RFC3339.fullmatch(text)
    if not found:
        return False
    hour, minute, second = (int(found[index]) for index in (4, 5, 6))
    return _is_date(f"{found[1]}-{found[2]}-{found[3]}") and hour < 24 and minute < 60 and second < 60


def _is_date(text: str) -> bool:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def is_duration(text: str) -> bool:
    """Whether it is a Go duration (`1h30m`) or one in words (`3 days`)."""
    return text == "0" or bool(_DURATION.fullmatch(text)) or bool(_WORD_DURATION.fullmatch(text))


def _ip(version: int) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            return ipaddress.ip_address(text).version == version
        except ValueError:
            return False

    return check


def _cidr(text: str) -> bool:
    try:
        ipaddress.ip_interface(text)
    except ValueError:
        return False
    return "/" in text


def _uri(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme or text.startswith("/")) and not any(char.isspace() for char in text)


def _hostname(text: str) -> bool:
    return 0 < len(text) <= 255 and all(_HOSTNAME.fullmatch(part) for part in text.removesuffix(".").split("."))


def _uuid(version: int | None) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parsed = uuid.UUID(text)
        except ValueError:
            return False
        return version is None or parsed.version == version

    return check


def _byte(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _checksum(text: str, length: int) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if length == 10:
        if not re.fullmatch(r"\d{9}[\dXx]", digits):
            return False
        return sum((10 - index) * (10 if c in "Xx" else int(c)) for index, c in enumerate(digits)) % 11 == 0
    if not re.fullmatch(r"\d{13}", digits):
        return False
    return sum(int(c) * (3 if index % 2 else 1) for index, c in enumerate(digits)) % 10 == 0


def _credit_card(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"\d{13,19}", digits):
        return False
    doubled = [int(c) * (2 if index % 2 else 1) for index, c in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def _anything(_text: str) -> bool:
    return True


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: bool(compiled.fullmatch(text))


FORMATS: Mapping[str, Callable[[str], bool]] = {
    "bsonobjectid": _matches(r"[0-9a-fA-F]{24}"),
    "uri": _uri,
    "email": lambda text: bool(_EMAIL.fullmatch(text)),
    "hostname": _hostname,
    "ipv4": _ip(4),
    "ipv6": _ip(6),
    "cidr": _cidr,
    "mac": lambda text: bool(_MAC.fullmatch(text)),
    "uuid": _uuid(None),
    "uuid3": _uuid(3),
    "uuid4": _uuid(4),
    "uuid5": _uuid(5),
    "isbn": lambda text: _checksum(text, 10) or _checksum(text, 13),
    "isbn10": lambda text: _checksum(text, 10),
    "isbn13": lambda text: _checksum(text, 13),
    "creditcard": _credit_card,
    "ssn": _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _matches(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matches(r"rgb\(\s*\d{1,3}\s*,\s*\d{1,3}\s*,\s*\d{1,3}\s*\)"),
    "byte": _byte,
    "password": _anything,
    "date": _is_date,
    "duration": is_duration,
    "date-time": _date_time,
    "datetime": _date_time,
    "k8s-short-name": lambda text: bool(_LABEL.fullmatch(text)),
    "k8s-long-name": lambda text: bool(_SUBDOMAIN.fullmatch(text)),
    # Formats of numbers: their range is validated with the type.
    "int32": _anything,
    "int64": _anything,
    "float": _anything,
    "double": _anything,
}
"""Format to its check of a string. Other formats are annotations and aren't validated."""

NUMBER_FORMATS = frozenset({"int32", "int64", "float", "double"})
