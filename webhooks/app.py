"""The FastAPI application: paths, limits of requests, health and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from vcbatch._version import __version__
from vcbatch.hosting.checks import Checks
from vcbatch.hosting.plain_http import Answer
from vcbatch.runtime.metrics.meter import Meter
from webhooks import review
from webhooks.paths import PATHS, Path
from webhooks.service import AdmissionService

LARGEST_BODY: Final = 3 * 2**20
"""The maximum of bytes of a review: twice the largest object that an API server stores."""
MOST_AT_ONCE: Final = 100
"""The maximum of concurrent reviews; more are rejected at once, and the API server's client retries."""
BODY_SECONDS: Final = 3.0
"""The maximum time in which a client sends a body."""

_REASONS = {400: "BadRequest", 408: "Timeout", 413: "RequestEntityTooLarge", 415: "UnsupportedMediaType",
            429: "TooManyRequests"}  # fmt: skip


def build(
    service: AdmissionService,
    *,
    meter: Meter,
    exposition: Callable[[], tuple[str, bytes]],
    most_at_once: int = MOST_AT_ONCE,
    ready: Checks | None = None,
) -> ASGIApp:
    """The whole application. `exposition` returns content type and text of /metrics, `ready` the checks of /readyz; if
    it has no check of the caches, one is added: whether the caches of the service are complete."""
    app = FastAPI(
        title="vcbatch admission",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        max_body_size=LARGEST_BODY,
    )
    for path in PATHS.values():
        app.add_api_route(
            path.url,
            _endpoint(service, path),
            methods=["POST"],
            openapi_extra=_REQUEST_BODY,
            responses=_RESPONSES,
            response_class=Response,
            name=path.url,
        )

    @app.get("/healthz", response_class=PlainTextResponse)
    async def healthz() -> str:
        """Always succeeds: a process that answers is alive."""
        return "ok"

    checks = ready or Checks("readyz")
    if "caches" not in checks:  # a given check knows more, such as that the service is shutting down
        checks.put("caches", lambda: "" if service.world.complete else "not filled yet")
    not_ready: dict[int | str, dict[str, Any]] = {503: {"description": "a check fails: it can't do its work"}}

    @app.get("/readyz", response_class=PlainTextResponse, responses=not_ready)
    async def readyz(request: Request) -> Response:
        """Whether the service is ready: `verbose` lists the checks, `exclude` leaves one out."""
        query = request.query_params
        return _plain(checks.answer({key: query.getlist(key) for key in query}))

    @app.get("/readyz/{name}", response_class=PlainTextResponse, responses={**not_ready, 404: {"description": "none"}})
    async def readyz_of(name: str) -> Response:
        """One check by itself."""
        return _plain(checks.answer_one(name))

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        content_type, text = exposition()
        return Response(text, media_type=content_type)

    return Door(app, meter=meter, most_at_once=most_at_once)


class Door:
    """Rejects requests beyond the limits: an immediate answer is better than one after the client's timeout."""

    def __init__(self, app: ASGIApp, *, meter: Meter, most_at_once: int) -> None:
        self._app = app
        self._meter = meter
        self._most = most_at_once
        self._inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in PATHS:
            await self._app(scope, receive, send)
            return
        if self._inside >= self._most:
            self._meter.count("admission_throttled", code="429")
            message = f"{self._inside} reviews are under way; try again"
            await _status(429, message, headers={"Retry-After": "1"})(scope, receive, send)
            return
        self._inside += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._inside -= 1


def _endpoint(service: AdmissionService, path: Path) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            return _status(415, f"want Content-Type application/json, got {media_type[:100] or 'none'}")
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await request.body()
        except TimeoutError:
            return _status(408, f"the body didn't arrive within {BODY_SECONDS:g} s", headers={"Connection": "close"})
        try:
            asked = review.parse(body)
        except review.MalformedReview as error:
            return _status(400, str(error))
        answer = await service.answer(path, asked, size=len(body))
        return Response(review.render(asked.uid, answer), media_type="application/json")

    return endpoint


def _plain(answer: Answer) -> Response:
    return Response(answer.body, status_code=answer.code, media_type=answer.content_type)


def _status(code: int, message: str, *, headers: dict[str, str] | None = None) -> Response:
    """An answer that isn't a review, in Kubernetes' format of a Status."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": _REASONS[code],
            "message": message}  # fmt: skip
    return Response(msgspec.json.encode(body), status_code=code, media_type="application/json", headers=headers)


_OBJECT: dict[str, Any] = {"type": "object", "nullable": True}
_REQUEST_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["apiVersion", "kind", "request"],
                    "properties": {
                        "apiVersion": {"type": "string", "enum": [review.API_VERSION]},
                        "kind": {"type": "string", "enum": [review.KIND]},
                        "request": {
                            "type": "object",
                            "required": ["uid", "resource", "operation"],
                            "properties": {
                                "uid": {"type": "string", "minLength": 1},
                                "resource": {
                                    "type": "object",
                                    "properties": {key: {"type": "string"} for key in ("group", "version", "resource")},
                                },
                                "operation": {"type": "string"},
                                "name": {"type": "string"},
                                "namespace": {"type": "string"},
                                "subResource": {"type": "string"},
                                "object": _OBJECT,
                                "oldObject": _OBJECT,
                            },
                        },
                    },
                }
            }
        },
    }
}
_ANSWER = {"application/json": {"schema": {"type": "object", "required": ["apiVersion", "kind", "response"]}}}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The AdmissionReview with its response", "content": _ANSWER},
    400: {"description": "Not an AdmissionReview"},
    408: {"description": "The body came too slowly"},
    413: {"description": "The body is too large"},
    415: {"description": "Not JSON"},
    429: {"description": "Too many reviews at once"},
}
