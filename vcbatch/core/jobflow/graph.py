"""Validation of a flow's dependencies by the rules of admission, which may not have been active when the flow was
created."""

from __future__ import annotations

from vcbatch.api.jobflow import JobFlow
from vcbatch.api.messages import shorten
from vcbatch.api.validate import order_errors, sentence

_LONGEST = 600


def invalid(flow: JobFlow) -> str:
    """The errors of the flow's dependencies as text; empty where it is valid."""
    return shorten(sentence(order_errors(flow)), limit=_LONGEST)
