"""Annotations of pods that our scheduler places (volcano-sh/volcano `pkg/webhooks/admission/pods/validate`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from vcbatch.api import names
from vcbatch.api.validate.errors import Cause, ValidationError

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
BUDGETS = (names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE)


def pod_errors(annotations: Mapping[str, object]) -> list[ValidationError]:
    """Errors of disruption budgets: only one, a positive number or a percentage from 1% to 99%, is allowed."""
    given = [name for name in BUDGETS if name in annotations]
    errors = [error for name in given for error in _budget_errors(name, annotations[name])]
    if len(given) > 1:
        text = f"not allow configure multiple annotations <[{' '.join(given)}]> at same time"
        errors.append(ValidationError("metadata.annotations", text))
    return errors


def pod_update_errors(annotations: Mapping[str, object], old: Mapping[str, object]) -> list[ValidationError]:
    """Errors of a change of the queue after admission: the PodGroup that is created later for the pod has that
    queue."""
    before, now = old.get(names.SCHEDULING_QUEUE_NAME), annotations.get(names.SCHEDULING_QUEUE_NAME)
    if before == now:
        return []
    field = f"metadata.annotations[{names.SCHEDULING_QUEUE_NAME}]"
    admitted = f"the pod was admitted with {f'queue {before}' if before else 'no queue'}"
    text = f'{field}: Invalid value: "{now or ""}": field is immutable: {admitted}; make a new pod'
    return [ValidationError(field, text, Cause.FORBIDDEN)]


def _budget_errors(name: str, value: object) -> Iterator[ValidationError]:
    field = f"metadata.annotations[{name}]"
    number = str(value).removesuffix("%")
    if not isinstance(value, str):
        yield ValidationError(field, f"{field}: Invalid value: {number}: must be of type string")
    elif _INTEGER.fullmatch(number) is None:
        yield ValidationError(field, f'invalid value strconv.Atoi: parsing "{number}": invalid syntax for {name}')
    elif value.endswith("%") and not 0 < int(number) < 100:
        yield ValidationError(
            field, f'invalid value <"{value}"> for {name}, it must be a valid percentage which between 1% ~ 99%'
        )
    elif not value.endswith("%") and int(number) <= 0:
        yield ValidationError(field, f'invalid value <"{value}"> for {name}, it must be a positive integer')
