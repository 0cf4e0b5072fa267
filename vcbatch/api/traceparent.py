"""The W3C trace context that a job carries in an annotation (https://www.w3.org/TR/trace-context/#traceparent-header)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from vcbatch.api.names import TRACEPARENT

_FORM: Final = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def traceparent_of(annotations: Mapping[str, str] | None) -> str:
    """The trace context among these annotations; empty where it is missing or malformed."""
    text: object = (annotations or {}).get(TRACEPARENT)
    return text if isinstance(text, str) and _FORM.fullmatch(text) else ""
