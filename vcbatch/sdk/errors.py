"""The errors of the SDK. Each is a `VcbatchError`, whose `hint` suggests what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from vcbatch.api.resources import NAMESPACES, QUEUES
from vcbatch.interfaces.api import ApiError

if TYPE_CHECKING:
    from vcbatch.sdk.models.job import Job


class VcbatchError(Exception):
    """The base of every error of the SDK. Its text has the `hint` below the message."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # An error may be pickled, and its own arguments are keyword-only.
        return _again, (type(self), self.__dict__)


def _again(cls: type[VcbatchError], state: dict[str, Any]) -> VcbatchError:
    error = cls.__new__(cls, state["message"])
    error.__dict__.update(state)
    return error


class NotConfigured(VcbatchError):
    """No server is configured, or its configuration is invalid."""


class ServerError(VcbatchError):
    """A server rejected a request, or didn't answer. `code` is the HTTP status (0: no answer), `reason` Kubernetes'
    reason."""

    def __init__(self, message: str, *, hint: str = "", code: int = 0, reason: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.reason = reason


class NotFound(ServerError):
    """The object doesn't exist, or no longer."""


class Conflict(ServerError):
    """Another client changed or created the object at the same time."""


class AlreadyExists(Conflict):
    """The name is in use."""


class Forbidden(ServerError):
    """The user lacks the permission, or isn't authenticated."""


class AdmissionDenied(ServerError):
    """Admission rejected the object: `field` is the path in its manifest, `reason` the error there, `errors` all pairs
    of these where there are several."""

    def __init__(
        self, message: str, *, hint: str = "", code: int = 0, errors: tuple[tuple[str, str], ...] = ()
    ) -> None:
        field, reason = errors[0] if errors else ("", message)
        super().__init__(message, hint=hint, code=code, reason=reason)
        self.field = field
        self.errors = errors


class Unavailable(ServerError):
    """The server doesn't answer, or can't serve the request now, after retries."""


class WaitTimeout(VcbatchError, TimeoutError):
    """The timeout of a wait is over. `job` is the present state of the job."""

    def __init__(self, message: str, *, hint: str = "", job: Job) -> None:
        super().__init__(message, hint=hint)
        self.job = job


class JobEnded(VcbatchError):
    """A job has ended, so that the condition or the action isn't possible any more. `job` is its final state."""

    def __init__(self, message: str, *, hint: str = "", job: Job) -> None:
        super().__init__(message, hint=hint)
        self.job = job


class JobFailed(JobEnded):
    """A job has ended in another phase than Completed. `exit_codes` are those of its failed pods, by pod name."""

    def __init__(self, message: str, *, hint: str = "", job: Job, exit_codes: Mapping[str, int]) -> None:
        super().__init__(message, hint=hint, job=job)
        self.exit_codes = dict(exit_codes)


class TaskFailed(VcbatchError):
    """A function that ran as a job raised: its exception is the cause of this one, `traceback` its traceback as text,
    `index` the position of the call in a `map`."""

    def __init__(self, message: str, *, hint: str = "", index: int = 0, traceback: str = "") -> None:
        super().__init__(message, hint=hint)
        self.index = index
        self.traceback = traceback


class ResultUnavailable(VcbatchError):
    """A function ended without a readable result. `index` is the position of the call in a `map`, `exit_code` that of
    its process, where it is known."""

    def __init__(self, message: str, *, hint: str = "", index: int = 0, exit_code: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.index = index
        self.exit_code = exit_code


@contextmanager
def translated(server: str) -> Iterator[None]:
    """Raise errors of the transport as errors of the SDK."""
    try:
        yield
    except ApiError as error:
        raise error_of(error, server) from error


def error_of(error: ApiError, server: str) -> ServerError:
    """The SDK's error for an error of the API server."""
    message = str(error)
    if error.code in (400, 403, 422) and (errors := _errors(error)):
        hint = "Correct the object and resubmit it."
        return AdmissionDenied(message, hint=hint, code=error.code, errors=errors)
    if _denied_by_webhook(message):
        return AdmissionDenied(message, hint="Correct the object and resubmit it.", code=error.code)
    kind, hint = _kind_of(error)
    if error.code == 0:
        message = f"{server} doesn't answer: {message}"
    elif error.missing_right is not None:
        message = error.sentence
    return kind(message, hint=hint, code=error.code, reason=error.reason)


def _kind_of(error: ApiError) -> tuple[type[ServerError], str]:
    if error.code == 401:
        return Forbidden, "Log in again, or choose other credentials with Client(context=...)."
    if (missing := error.missing_right) is not None:
        return Forbidden, missing.remedy
    if error.code == 403:
        return Forbidden, "That isn't about your rights: the cluster's own rules refuse it."
    if error.not_found and not error.details.get("name"):
        return NotFound, "Does the cluster have vcbatch? `vcbatch crds | kubectl apply -f -` installs its definitions."
    if error.not_found:
        return NotFound, _missing(error)
    if error.already_exists:
        return AlreadyExists, "Choose another name, or delete the one that is there."
    if error.code == 409:
        return Conflict, "Somebody else changed it at the same time: read it again, and try again."
    if error.transient:
        return Unavailable, "Is the server running, and reachable from here? Otherwise try again in a minute."
    return ServerError, ""


def _missing(error: ApiError) -> str:
    match error.details.get("kind"):
        case NAMESPACES.plural:
            return f"`kubectl create namespace {error.details.get('name')}` makes it."
        case QUEUES.plural:
            return "client.queues() lists those that there are."
        case _:
            return "Is it in another namespace? Give it as namespace=..."


def _denied_by_webhook(message: str) -> bool:
    return message.startswith("admission webhook") and "denied the request" in message


def _errors(error: ApiError) -> tuple[tuple[str, str], ...]:
    """The errors in a rejection, as paths and messages."""
    causes = error.details.get("causes")
    if not isinstance(causes, list):
        return ()
    found: list[tuple[str, str]] = []
    for entry in cast("list[Any]", causes):
        if isinstance(entry, dict):
            cause = cast("dict[str, Any]", entry)
            found.append((str(cause.get("field") or ""), str(cause.get("message") or cause.get("reason") or "")))
    return tuple(found)
