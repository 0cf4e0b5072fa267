"""Pieces of the Common Expression Language that several policies are made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from vcbatch.api.resources import JOBS


@dataclass(frozen=True, slots=True)
class Rule:
    """`holds` is an expression that is true of what is fine; `message` what is said of the rest."""

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
    """`value` looks like the pattern, and has at most so many characters."""
    matched = f"{value}.matches({text(pattern)})"
    return f"({value}.size() <= {longest} && {matched})" if longest else matched


def annotation(name: str, of: str = "object") -> str:
    """The annotation as an optional value."""
    return f"{of}.metadata.?annotations[?{text(name)}]"


BUDGET: Final = "{}: it must be a positive integer or a valid percentage which between 1% ~ 99%"
TWO_BUDGETS: Final = "not allow configure multiple annotations at same time"


def budget(value: str) -> str:
    """Whether the optional `value`, which has one, is a disruption budget."""
    number = f"int({value}.value().replace('%', ''))"
    percent = f"!{value}.value().endsWith('%') || {number} < 100"
    return f"({value}.value().matches('^[+-]?[0-9]{{1,18}}%?$') && {number} > 0 && ({percent}))"


CONTROLLERS_ACCOUNT: Final = "volcano-system/vcbatch-controllers"
"""The service account of `vcbatch controllers` as shipped."""
OF_A_JOB: Final = "not-of-an-admitted-job"
"""The name of the match condition `not_of_a_job`."""


def user_of(account: str) -> str:
    """As whom an API server knows a service account (`NAMESPACE/NAME`)."""
    return f"system:serviceaccount:{account.replace('/', ':')}"


def not_of_a_job(controllers: str = CONTROLLERS_ACCOUNT) -> str:
    """False of what that account (`NAMESPACE/NAME`) creates for a Job of ours: the Job was judged, and the controllers
    judge the rest (`vcbatch.runtime.controllers.own_admission`). Nobody else has the name of the account."""
    user = text(user_of(controllers))
    owners = "object.metadata.?ownerReferences.orValue([])"
    kind = f"o.kind == {text(JOBS.kind)} && o.apiVersion.startsWith({text(f'{JOBS.group}/')})"
    job = f"o.?controller.orValue(false) && {kind}"
    return f"oldObject != null || request.userInfo.username != {user} || !{owners}.exists(o, {job})"


UNCHANGED: Final = "(oldObject != null && object.?spec == oldObject.?spec)"
"""What was stored under other rules may have its labels changed."""
