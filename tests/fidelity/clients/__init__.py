"""What programs written with the official Python client meet: typed, dynamic, watching and asynchronous, against both
servers. `sync` and `asynchronous` hold the sessions; here is how their answers are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tests.fidelity.clients import asynchronous, sync
from tests.fidelity.clients.observing import Session
from tests.fidelity.golden import Answers
from tests.fidelity.servers import Server

FOLDER = Path(__file__).parent
_SESSIONS: dict[str, Session] = {**sync.SESSIONS, **asynchronous.SESSIONS}


def names() -> list[str]:
    return sorted(_SESSIONS)


def play(server: Server, chosen: Sequence[str], settled: Callable[[], None] = lambda: None) -> dict[str, Answers]:
    """The answers of the chosen sessions, or of all. Each has a namespace of its own."""
    wanted = [name for name in names() if not chosen or name in chosen]
    for name in wanted:
        sync.prepare(server, f"c-{name}")
    settled()
    return {name: _SESSIONS[name](server, f"c-{name}") for name in wanted}
