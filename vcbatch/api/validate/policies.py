"""Validation of lists of lifecycle policies (volcano-sh/volcano `pkg/webhooks/admission/jobs/validate`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from vcbatch.api.duration import MalformedDuration, parse_nanoseconds
from vcbatch.api.job import Action, Event, LifecyclePolicy
from vcbatch.api.validate.errors import ValidationError

POLICY_EVENTS: Final = (
    Event.ANY,
    Event.POD_FAILED,
    Event.POD_EVICTED,
    Event.POD_PENDING,
    Event.JOB_UNKNOWN,
    Event.TASK_COMPLETED,
    Event.TASK_FAILED,
    Event.JOB_UPDATED,
)
"""Events that a policy may name; the others are internal to the controller."""

POLICY_ACTIONS: Final = (
    Action.ABORT_JOB,
    Action.RESTART_JOB,
    Action.RESTART_TASK,
    Action.RESTART_POD,
    Action.RESTART_PARTITION,
    Action.TERMINATE_JOB,
    Action.COMPLETE_JOB,
    Action.RESUME_JOB,
)

_HELP: Final = f"valid events are [{' '.join(POLICY_EVENTS)}], valid actions are [{' '.join(POLICY_ACTIONS)}]"


def policy_errors(policies: Sequence[LifecyclePolicy], path: str) -> list[ValidationError]:
    """Errors of the list at `path`."""
    errors: list[ValidationError] = []
    events: set[str] = set()
    codes: set[int] = set()
    for index, policy in enumerate(policies):
        at = f"{path}[{index}]"
        errors += _own_errors(policy, at)
        for event in dict.fromkeys(policy.all_events):
            if event in events:
                errors.append(ValidationError(f"{at}.event", f"duplicate event {event}  across different policy"))
            events.add(event)
        if policy.exit_code is not None:
            if policy.exit_code in codes:
                errors.append(ValidationError(f"{at}.exitCode", f"duplicate exitCode {policy.exit_code}"))
            codes.add(policy.exit_code)
    if Event.ANY in events and len(events) > 1:
        errors.append(ValidationError(path, "if there's * here, no other policy should be here"))
    if errors:
        last = errors[-1]
        errors[-1] = ValidationError(last.field, f"{last.message}; {_HELP}", last.cause)
    return errors


def _own_errors(policy: LifecyclePolicy, at: str) -> Iterator[ValidationError]:
    if policy.all_events and policy.exit_code is not None:
        yield ValidationError(at, "must not specify event and exitCode simultaneously")
    if not policy.all_events and policy.exit_code is None:
        yield ValidationError(at, "either event and exitCode should be specified")
    for event in policy.all_events:
        if event not in POLICY_EVENTS:
            yield ValidationError(f"{at}.event", f'{at}.event: Invalid value: "{event}": invalid policy event')
    # A policy on an exit code may have any action, as in Volcano: an unknown one does nothing.
    if policy.action not in POLICY_ACTIONS and policy.all_events:
        yield ValidationError(f"{at}.action", f'{at}.action: Invalid value: "{policy.action}": invalid policy action')
    if policy.exit_code == 0:
        yield ValidationError(f"{at}.exitCode", "0 is not a valid error code")
    if policy.timeout is not None:
        yield from duration_errors(policy.timeout, f"{at}.timeout")


def duration_errors(text: str, path: str) -> Iterator[ValidationError]:
    """An error where the text is no Go duration."""
    try:
        parse_nanoseconds(text)
    except MalformedDuration as error:
        yield ValidationError(
            path, f'{path}: Invalid value: "{text}": {error}, want a Go duration such as 90s or 1h30m'
        )
