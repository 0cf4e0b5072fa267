"""Validation errors as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


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
class ValidationError:
    """One error. `message` is a whole sentence with the given and the allowed values, in Volcano's words where it has
    the same rule; `field` is the path in the object, for programs."""

    field: str
    message: str
    cause: Cause = Cause.INVALID

    def __str__(self) -> str:
        return self.message


MOST_REPORTED: Final = 50
LONGEST_REPORTED: Final = 16 * 1024
"""The maximum of characters in the answer to a client; more would hardly be read."""


def sentence(errors: Iterable[ValidationError]) -> str:
    """All errors in one message, in their order, each once; if there are very many, the first ones."""
    texts = list(dict.fromkeys(error.message.rstrip(";. ") for error in errors))
    text = "; ".join(texts[:MOST_REPORTED])
    if len(text) > LONGEST_REPORTED:
        text = f"{text[:LONGEST_REPORTED]}..."
    more = len(texts) - MOST_REPORTED
    return f"{text}; and {more} more errors" if more > 0 else text
