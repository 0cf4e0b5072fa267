"""What is wrong with an object, as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """`reason` of a cause in a Kubernetes Status."""

    INVALID = "FieldValueInvalid"
    REQUIRED = "FieldValueRequired"
    DUPLICATE = "FieldValueDuplicate"
    NOT_FOUND = "FieldValueNotFound"
    FORBIDDEN = "FieldValueForbidden"
    NOT_SUPPORTED = "FieldValueNotSupported"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `message` is a whole sentence that names what was given and what is allowed, in Volcano's words where
    it has a rule of its own; `field` is the path in the object, for machines."""

    field: str
    message: str
    cause: Cause = Cause.INVALID

    def __str__(self) -> str:
        return self.message


def sentence(faults: Iterable[Fault]) -> str:
    """All faults in one message, in their order, each once."""
    return "; ".join(dict.fromkeys(fault.message.rstrip(";. ") for fault in faults))
