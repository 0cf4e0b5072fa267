"""`pods/log`. Source: kubernetes `pkg/registry/core/pod`, `LogLocation`; the kubelet's `validateContainerLogStatus`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from vcbatch.api import field_errors
from vcbatch.api.resources import PODS
from vcbatch.local.apiserver.apierrors import FieldError, StatusError, bad_request, invalid
from vcbatch.local.apiserver.registry import HandlerRequest, Json, Reply
from vcbatch.local.apiserver.request import go_integer
from vcbatch.local.apiserver.tables import dig, parse_time
from vcbatch.local.kubelet.logs import LogOptions

_OPENING_SECONDS = 0.05


async def read_log(request: HandlerRequest) -> Reply:
    """GET pods/NAME/log: the part of one container's log that the query selects."""
    options = log_options(request.query)
    pod = request.operations.get(PODS, request.ctx.namespace, request.name)
    container = choose_container(pod, _last(request.query, "container") or "")
    if not dig(pod, "spec", "nodeName"):
        socket = request.scope is not None and request.scope["type"] == "websocket"
        return Reply(body=_nothing() if socket else b"", content_type="text/plain")
    _refuse_unstarted(pod, container, previous=options.previous)
    if request.kubelet is None:
        raise StatusError(503, "ServiceUnavailable", "no kubelet runs pods for this server: it has no logs to give")
    chunks = request.kubelet.logs(request.ctx.namespace or "", request.name, container, options)
    return Reply(body=await _opened(chunks), content_type="text/plain")


async def _nothing() -> AsyncIterator[bytes]:
    """An empty log, as a stream for a WebSocket."""
    return
    yield


async def _opened(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same chunks, after the first is available or a short wait: a kubelet that refuses does so at once, and its
    error can only be the response as long as no chunk was sent."""

    async def following() -> bytes | None:
        return await anext(chunks, None)

    first = asyncio.create_task(following(), name="first chunk of a log")
    await asyncio.wait((first,), timeout=_OPENING_SECONDS)
    if first.done():
        first.result()

    async def stream() -> AsyncIterator[bytes]:
        try:
            chunk = await first
            while chunk is not None:
                yield chunk
                chunk = await following()
        finally:
            first.cancel()

    return stream()


def _last(query: Mapping[str, Sequence[str]], key: str) -> str | None:
    given = query.get(key)
    return given[-1] if given else None


def _flag(query: Mapping[str, Sequence[str]], key: str) -> bool:
    return (_last(query, key) or "").lower() not in ("", "0", "false")


def _number(query: Mapping[str, Sequence[str]], key: str) -> int | None:
    text = _last(query, key)
    if text is None or text == "":
        return None
    return go_integer(text)


def log_options(query: Mapping[str, Sequence[str]]) -> LogOptions:
    """The options of a log in a query. Raises 400 and 422 for invalid ones."""
    tail, limit = _number(query, "tailLines"), _number(query, "limitBytes")
    seconds, time_text = _number(query, "sinceSeconds"), _last(query, "sinceTime")
    found: list[FieldError] = []
    found += field_errors.not_negative("tailLines", tail)
    if limit is not None and limit < 1:
        found.append(field_errors.invalid("limitBytes", limit, "must be greater than 0"))
    since = parse_time(time_text) if time_text else None
    if time_text and since is None:
        raise bad_request(
            f'parsing time {field_errors.go_quote(time_text)} as "2006-01-02T15:04:05Z07:00": '
            f'cannot parse {field_errors.go_quote(time_text)} as "2006"'
        )
    if seconds is not None and since is not None:
        detail = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        found.append(field_errors.forbidden("", detail))
    elif seconds is not None and seconds < 1:
        found.append(field_errors.invalid("sinceSeconds", seconds, "must be greater than 0"))
    if found:
        raise invalid(group="", kind="PodLogOptions", name="", errors=found)
    return LogOptions(
        follow=_flag(query, "follow"),
        previous=_flag(query, "previous"),
        timestamps=_flag(query, "timestamps"),
        tail_lines=tail,
        since_seconds=seconds,
        since_time=since,
        limit_bytes=limit,
    )


def _names(pod: Json, kind: str) -> list[str]:
    return [str(container.get("name", "")) for container in dig(pod, "spec", kind) or ()]


def choose_container(pod: Json, asked: str) -> str:
    """The container in the query, or the pod's only one. Raises 400 otherwise."""
    name = dig(pod, "metadata", "name")
    regular, initial = _names(pod, "containers"), _names(pod, "initContainers")
    if asked:
        if asked not in (*regular, *initial, *_names(pod, "ephemeralContainers")):
            raise bad_request(f"container {asked} is not valid for pod {name}")
        return asked
    if len(regular) == 1:
        return regular[0]
    text = f"a container name must be specified for pod {name}"
    if regular:
        text += f", choose one of: [{' '.join(regular)}]"
    if initial:
        text += f" or one of the init containers: [{' '.join(initial)}]"
    raise bad_request(text)


_PULL_WORDS = {"ErrImagePull": "image can't be pulled", "ImagePullBackOff": "trying and failing to pull image"}


def _refuse_unstarted(pod: Json, container: str, *, previous: bool) -> None:
    """Raises 400 with the kubelet's message where there is no log yet, or none of a previous run."""
    name = dig(pod, "metadata", "name")
    what = f'container "{container}" in pod "{name}"'
    status = _status_of(pod, container)
    ended_before = dig(status, "lastState", "terminated") is not None
    if previous:
        if not ended_before:
            raise bad_request(f"previous terminated {what} not found")
        return
    state: Any = (status or {}).get("state") or {}
    if state.get("running") is not None or state.get("terminated") is not None or ended_before:
        return
    reason = dig(state, "waiting", "reason") or dig(pod, "status", "reason")
    if not reason:
        reason = "PodInitializing" if _names(pod, "initContainers") else "ContainerCreating"
    raise bad_request(f"{what} is waiting to start: {_PULL_WORDS.get(reason, reason)}")


def _status_of(pod: Json, container: str) -> Json | None:
    for key in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for status in dig(pod, "status", key) or ():
            if status.get("name") == container:
                return status
    return None
