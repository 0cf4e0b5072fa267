"""A probe of one pod, as data."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class ProbeKind(StrEnum):
    """The type of the probe."""

    HTTP = "http"
    """A GET that is answered with 200 to 399; redirects aren't followed."""
    TCP = "tcp"
    """A connection that is accepted."""


class Probe(NamedTuple):
    """A probe of one pod at the address that it had."""

    pod_uid: str
    namespace: str
    pod: str
    address: str
    kind: ProbeKind
    port: int
    path: str = ""
    header: tuple[str, str] | None = None
