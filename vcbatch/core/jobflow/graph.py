"""Whether what a flow asks for is an order of jobs: the rules of admission, which may not have been there when it was
made."""

from __future__ import annotations

from vcbatch.api.jobflow import JobFlow
from vcbatch.api.messages import shorten
from vcbatch.api.validate import order_errors, sentence

_LONGEST = 600


def invalid(flow: JobFlow) -> str:
    """What is wrong with it; empty where nothing is."""
    return shorten(sentence(order_errors(flow)), limit=_LONGEST)
