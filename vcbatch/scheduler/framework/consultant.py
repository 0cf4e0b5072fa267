"""Somebody outside who is asked while a cycle decides (the extender plugin's server), as an interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class ConsultError(Exception):
    """There was no answer that can be used; the message says why, in words for people."""


class Consultant(Protocol):
    """Asks a server, and waits for the answer: a cycle has to know before it goes on."""

    def ask(self, url: str, question: Mapping[str, Any], *, timeout: float) -> object:
        """The decoded JSON answer to a question, None where it is empty. `timeout` is in seconds, for all of it.

        Raises:
            ConsultError: no answer in time, one that isn't JSON, is too large, or says no.
        """
        ...


class Nobody:
    """Where no consultant is given, nobody answers."""

    def ask(self, url: str, question: Mapping[str, Any], *, timeout: float) -> object:
        raise ConsultError("this scheduler runs where it can't ask anybody")
