"""A question to a pod, as data."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class ProbeKind(StrEnum):
    """How a pod is asked."""

    HTTP = "http"
    """A GET that is answered with 200 to 399; where that leads to isn't followed."""
    TCP = "tcp"
    """A connection that is taken."""


class Probe(NamedTuple):
    """One question to one pod at the address that it had."""

    pod_uid: str
    namespace: str
    pod: str
    address: str
    kind: ProbeKind
    port: int
    path: str = ""
    header: tuple[str, str] | None = None
