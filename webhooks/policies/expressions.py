"""Building blocks in the Common Expression Language that several policies use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from vcbatch.api.resources import JOBS


@dataclass(frozen=True, slots=True)
class Rule:
    """`holds` is an expression that is true for valid objects; `message` is the error for all others."""

    holds: str
    message: str


def text(value: str) -> str:
    """A string literal."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def listed(values: Iterable[str]) -> str:
    """A list literal of strings."""
    return f"[{', '.join(text(value) for value in values)}]"


LABEL: Final = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
SUBDOMAIN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
QUALIFIED: Final = "^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
DURATION: Final = r"^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
FLOAT: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def matches(value: str, pattern: str, *, longest: int = 0) -> str:
    """Whether `value` matches the pattern, and has at most `longest` characters (0: any number)."""
    matched = f"{value}.matches({text(pattern)})"
    return f"({value}.size() <= {longest} && {matched})" if longest else matched


def annotation(name: str, of: str = "object") -> str:
    """The annotation, as an optional value."""
    return f"{of}.metadata.?annotations[?{text(name)}]"


BUDGET: Final = "{}: it must be a positive integer or a valid percentage which between 1% ~ 99%"
TWO_BUDGETS: Final = "not allow configure multiple annotations at same time"


def budget(value: str) -> str:
    """Whether the optional `value`, which is present, is a valid disruption budget."""
    number = f"int({value}.value().replace('%', ''))"
    percent = f"!{value}.value().endsWith('%') || {number} < 100"
    return f"({value}.value().matches('^[+-]?[0-9]{{1,18}}%?$') && {number} > 0 && ({percent}))"


CONTROLLERS_ACCOUNT: Final = "volcano-system/vcbatch-controllers"
"""The service account of `vcbatch controllers` as shipped."""
OF_A_JOB: Final = "not-of-an-admitted-job"
"""The name of the match condition `not_of_a_job`."""


def user_of(account: str) -> str:
    """The user name of a service account (`NAMESPACE/NAME`) at an API server."""
    return f"system:serviceaccount:{account.replace('/', ':')}"


def not_of_a_job(controllers: str = CONTROLLERS_ACCOUNT) -> str:
    """False for objects that the account (`NAMESPACE/NAME`) creates for a Job of ours: the Job was validated, and the
    controllers validate the rest (`vcbatch.runtime.controllers.own_admission`). No other user has the account's
    name."""
    user = text(user_of(controllers))
    owners = "object.metadata.?ownerReferences.orValue([])"
    kind = f"o.kind == {text(JOBS.kind)} && o.apiVersion.startsWith({text(f'{JOBS.group}/')})"
    job = f"o.?controller.orValue(false) && {kind}"
    return f"oldObject != null || request.userInfo.username != {user} || !{owners}.exists(o, {job})"


UNCHANGED: Final = "(oldObject != null && object.?spec == oldObject.?spec)"
"""An object that was stored under other rules may have its labels changed."""
