"""The extender's server asked over HTTP: answers, bounds and failures, with a real server in a thread."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.scheduling import extender
from vcbatch.runtime.scheduling.extender import HttpConsultant
from vcbatch.scheduler.framework.consultant import ConsultError


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, self.headers["Content-Type"], json.loads(body)))
        self.server.peers.add(self.client_address[1])
        if self.server.hang is not None:
            self.server.hang.wait()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.answer)))
        if self.server.closing:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(self.server.answer)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's own name
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    answer = b'{"status": 1}'
    status = 200
    closing = False
    hang: threading.Event | None = None

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, str, Any]] = []
        self.peers: set[int] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def _served() -> Iterator[_Server]:
    server = _Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        if server.hang is not None:
            server.hang.set()
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_question_is_posted_and_the_answer_decoded_on_one_connection() -> None:
    with _served() as server:
        consultant = HttpConsultant(clock=SystemClock())
        for number in range(3):
            assert consultant.ask(f"{server.url}/scheduler/predicate", {"n": number}, timeout=5) == {"status": 1}
        consultant.close()
    assert server.asked == [("/scheduler/predicate", "application/json", {"n": n}) for n in range(3)]
    assert len(server.peers) == 1


def test_an_empty_answer_is_none() -> None:
    with _served() as server:
        server.answer = b""
        consultant = HttpConsultant(clock=SystemClock())
        assert consultant.ask(server.url + "/open", {}, timeout=5) is None
        consultant.close()


def test_a_connection_that_the_server_closed_is_made_anew() -> None:
    with _served() as server:
        server.closing = True
        consultant = HttpConsultant(clock=SystemClock())
        assert [consultant.ask(server.url + "/v", {}, timeout=5) for _ in range(2)] == [{"status": 1}] * 2
        consultant.close()
    assert len(server.peers) == 2


@pytest.mark.parametrize(
    ("status", "answer", "message"), [(500, b"{}", "HTTP 500"), (200, b"{", "its answer isn't JSON")]
)
def test_answers_that_say_no_or_nothing(status: int, answer: bytes, message: str) -> None:
    with _served() as server:
        server.status, server.answer = status, answer
        consultant = HttpConsultant(clock=SystemClock())
        with pytest.raises(ConsultError, match=message):
            consultant.ask(server.url + "/v", {}, timeout=5)
        server.status, server.answer = 200, b"{}"
        assert consultant.ask(server.url + "/v", {}, timeout=5) == {}
        consultant.close()


def test_an_answer_that_is_too_large_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extender, "LARGEST_ANSWER", 1000)
    with _served() as server:
        server.answer = b'"' + b"x" * 5000 + b'"'
        consultant = HttpConsultant(clock=SystemClock())
        with pytest.raises(ConsultError, match="larger than 1000 bytes"):
            consultant.ask(server.url + "/v", {}, timeout=5)
        consultant.close()


def test_a_server_that_hangs_is_given_up() -> None:
    with _served() as server:
        server.hang = threading.Event()
        consultant = HttpConsultant(clock=SystemClock())
        with pytest.raises(ConsultError, match=r"no answer within 0\.05 s"):
            consultant.ask(server.url + "/v", {}, timeout=0.05)
        consultant.close()


def test_nobody_there() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(ConsultError, match="refused"):
            HttpConsultant(clock=SystemClock()).ask(f"http://127.0.0.1:{port}/v", {}, timeout=5)


class _Slow(SystemClock):
    """A clock by which every look takes a while."""

    def __init__(self) -> None:
        self.at = 0.0

    def monotonic(self) -> float:
        self.at += 0.25
        return self.at


def test_answers_together_take_half_of_the_time_at_most() -> None:
    with _served() as server:
        clock = _Slow()
        consultant = HttpConsultant(clock=clock)
        with pytest.raises(ConsultError, match="it is given a rest"):
            for _ in range(20):
                consultant.ask(server.url + "/v", {}, timeout=100)
        clock.at += extender.WINDOW
        assert consultant.ask(server.url + "/v", {}, timeout=100) == {"status": 1}
        consultant.close()
