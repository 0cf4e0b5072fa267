"""A webhook server that says what it is told to say, and keeps what it is asked."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from tests.cluster.pki import Authority
from tests.fidelity.exchanges import overlaid

Json = dict[str, Any]

_UNTIL_GIVEN_UP = 15.0


@dataclass(frozen=True, slots=True)
class Asked:
    """One review that came: at which hook, with which query, and its document."""

    number: int
    hook: str
    query: str
    review: Json

    @property
    def mutating_order(self) -> int:
        """The turn of a hook that is asked in one; validating webhooks, asked all at once, have none."""
        return self.number if self.hook.startswith("m-") else 1_000_000


class WebhookServer:
    """Listens on loopback while it is entered. `hooks` says what is answered; see the package for its language."""

    def __init__(self, folder: Path) -> None:
        authority = Authority(folder)
        pair = authority.serving("webhooks")
        self.ca = authority.certificate.read_bytes()
        self.hooks: Mapping[str, Json] = {}
        self._asked: list[Asked] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self) -> list[Asked]:
        """What was asked since the last time."""
        with self._lock:
            asked, self._asked = self._asked, []
        return asked

    def answer(self, hook: str, query: str, review: Json) -> tuple[int, Mapping[str, str], bytes] | None:
        """Code, headers and body; None to say nothing and hang up."""
        reported = self.hooks[hook]
        with self._lock:
            self._asked.append(Asked(len(self._asked), hook, query, review))
        if reported.get("does") == "hang":
            self._closing.wait(_UNTIL_GIVEN_UP)
        if "does" in reported:
            return None
        headers = {name: str(value) for name, value in reported.get("headers", {}).items()}
        if "raw" in reported or "code" in reported:
            return reported.get("code", 200), headers, str(reported.get("raw", "")).encode()
        response: Json = overlaid({"uid": review["request"]["uid"], "allowed": True}, reported.get("response", {}))
        if "patch" in reported:
            response["patch"] = base64.b64encode(json.dumps(reported["patch"]).encode()).decode()
            response.setdefault("patchType", "JSONPatch")
        document = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        document = overlaid(document, reported.get("review", {}))
        return 200, {"Content-Type": "application/json", **headers}, json.dumps(document).encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        answer = self.answer

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                path, _, query = self.path.partition("?")
                said = answer(path.removeprefix("/"), query, json.loads(body))
                if said is None:
                    self.close_connection = True
                    return
                code, headers, text = said
                self.send_response_only(code)
                for name, value in {**headers, "Content-Length": str(len(text))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Says nothing."""

        return Handler
