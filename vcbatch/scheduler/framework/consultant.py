"""The interface to an external server that plugins call during a cycle (the server of the extender plugin)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class ConsultError(Exception):
    """The call returned no usable answer; the message says why, for users."""


class Consultant(Protocol):
    """Calls a server and waits for the answer, which the cycle needs to continue."""

    def ask(self, url: str, question: Mapping[str, Any], *, timeout: float) -> object:
        """The decoded JSON answer; None if it is empty. `timeout` is the total time in seconds.

        Raises:
            ConsultError: no answer in time, an error status, or an answer that isn't JSON or is too large.
        """
        ...


class Nobody:
    """The consultant where calls aren't possible: every call fails."""

    def ask(self, url: str, question: Mapping[str, Any], *, timeout: float) -> object:
        raise ConsultError("this scheduler runs where it can't ask anybody")
