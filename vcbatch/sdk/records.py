"""Events of a job, and the ends of its pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from vcbatch.api import names
from vcbatch.api.loose import part
from vcbatch.api.resources import EVENTS, PODGROUPS, PODS
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.sdk.models.status import count_at, text_at, time_at

Json = dict[str, Any]
_BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """An event of a job, its PodGroup or one of its pods (`kind` and `name`), which occurred `count` times, last at
    `time`. `type` is Normal or Warning."""

    time: datetime | None
    type: str
    reason: str
    message: str
    kind: str
    name: str
    count: int

    def __str__(self) -> str:
        time = f"{self.time:%Y-%m-%d %H:%M:%S} " if self.time is not None else ""
        often = f" (×{self.count})" if self.count > 1 else ""
        return f"{time}{self.type} {self.reason} {self.kind.lower()}/{self.name}: {self.message}{often}"

    @classmethod
    def read(cls, event: Mapping[str, Any]) -> JobEvent:
        """Read a core/v1 Event; missing fields are empty."""
        series, about = part(event, "series"), part(event, "involvedObject")
        last = time_at(series, "lastObservedTime") or time_at(event, "lastTimestamp")
        return cls(
            time=last or time_at(event, "eventTime") or time_at(part(event, "metadata"), "creationTimestamp"),
            type=text_at(event, "type"),
            reason=text_at(event, "reason"),
            message=text_at(event, "message"),
            kind=text_at(about, "kind"),
            name=text_at(about, "name"),
            count=max(1, count_at(series, "count"), count_at(event, "count")),
        )


async def events_of(api: Api, job: Mapping[str, Any]) -> list[JobEvent]:
    """The events of a job, of its PodGroup and of its present pods, oldest first."""
    metadata = part(job, "metadata")
    namespace, name, uid = text_at(metadata, "namespace"), text_at(metadata, "name"), text_at(metadata, "uid")
    pods = (await api.list(PODS, namespace=namespace, label_selector=f"{names.JOB_NAME}={name}")).items
    group = names.pod_group_name(name, uid)
    reported = [
        *await _about(api, namespace, f"involvedObject.uid={uid}"),
        *await _about(api, namespace, f"involvedObject.kind={PODGROUPS.kind},involvedObject.name={group}"),
        *(
            event
            for event in await _about(api, namespace, f"involvedObject.kind={PODS.kind}")
            if text_at(part(event, "involvedObject"), "uid") in {text_at(part(pod, "metadata"), "uid") for pod in pods}
        ),
    ]
    return sorted((JobEvent.read(event) for event in reported), key=lambda event: event.time or _BEGINNING)


async def _about(api: Api, namespace: str, selector: str) -> Sequence[Json]:
    return (await api.list(EVENTS, namespace=namespace, field_selector=selector)).items


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEnd:
    """The end of a failed pod: the exit code of one of its containers, where there is one, and the reason in the status
    of the job, the pod or the container, which have the same terms for causes outside of the program."""

    exit_code: int | None
    reason: str


async def pod_ends_of(api: Api, job: Mapping[str, Any]) -> dict[str, PodEnd]:
    """The ends of the job's failed pods, by name: from the job's status, else from the pods that still exist."""
    metadata = part(job, "metadata")
    ends: dict[str, PodEnd] = {}
    for loss in part(part(job, "status"), "ledger").get("losses") or ():
        if isinstance(loss, dict):
            ends[text_at(loss, "pod")] = PodEnd(exit_code=_code(loss), reason=text_at(loss, "cause"))
    selector = f"{names.JOB_NAME}={text_at(metadata, 'name')}"
    try:
        pods = (await api.list(PODS, namespace=text_at(metadata, "namespace"), label_selector=selector)).items
    except ApiError as error:
        if error.code != 403:
            raise
        return ends
    for pod in pods:
        status = part(pod, "status")
        terminated = [part(part(one, "state"), "terminated") for one in status.get("containerStatuses") or ()]
        failed = [end for end in terminated if _code(end)]
        reason = text_at(status, "reason")
        if failed or reason:
            end = failed[-1] if failed else {}
            name = text_at(part(pod, "metadata"), "name")
            ends[name] = PodEnd(exit_code=_code(end), reason=reason or text_at(end, "reason"))
    return ends


def _code(end: Mapping[str, Any]) -> int | None:
    code = end.get("exitCode")
    return code if isinstance(code, int) else None


async def exit_codes_of(api: Api, job: Mapping[str, Any]) -> dict[str, int]:
    """The exit codes in `pod_ends_of`, for the pods that have one."""
    ends = await pod_ends_of(api, job)
    return {pod: end.exit_code for pod, end in ends.items() if end.exit_code is not None}
