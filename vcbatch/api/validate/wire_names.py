"""The name rules of Kubernetes (`k8s.io/apimachinery/pkg/util/validation`), as far as jobs and queues need them."""

from __future__ import annotations

import re
from typing import Final

LONGEST_LABEL: Final = 63
LONGEST_SUBDOMAIN: Final = 253

_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)


def qualified_name(name: str) -> list[str]:
    """Complaints about a name that becomes a label value: 63 characters of letters, digits, `-`, `_` and `.`."""
    complaints: list[str] = []
    if len(name) > LONGEST_LABEL:
        complaints.append(f"name part must be no more than {LONGEST_LABEL} bytes")
    if _QUALIFIED.fullmatch(name) is None:
        complaints.append(
            "name part must consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )
    return complaints


def dns_label(name: str) -> list[str]:
    """Complaints about a host name: 63 characters of lower-case letters, digits and `-`."""
    complaints: list[str] = []
    if len(name) > LONGEST_LABEL:
        complaints.append(f"must be no more than {LONGEST_LABEL} bytes")
    if _LABEL.fullmatch(name) is None:
        complaints.append(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
            "and must start and end with an alphanumeric character"
        )
    return complaints


def dns_subdomain(name: str) -> list[str]:
    """Complaints about an object name: 253 characters, labels joined by dots."""
    complaints: list[str] = []
    if len(name) > LONGEST_SUBDOMAIN:
        complaints.append(f"must be no more than {LONGEST_SUBDOMAIN} bytes")
    if _SUBDOMAIN.fullmatch(name) is None:
        complaints.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character"
        )
    return complaints
