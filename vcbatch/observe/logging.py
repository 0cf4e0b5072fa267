"""Logs: one JSON object per line for machines, one short line for users at a terminal. Secrets are removed.

A record's `extra` fields become fields of the line; the message is readable without them.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, TextIO

from vcbatch.observe.repeats import Repeats

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_LONGEST = 16 * 1024
_FILE_BYTES = 32 * 1024 * 1024
# Credentials as they occur in texts: Authorization headers, JSON web tokens, PEM keys.
_SECRET = re.compile(
    r"(?i:bearer|basic)\s+[\w\-.~+/=]{8,}"
    r"|\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
_RESET = "\x1b[0m"
_COLOURS = {"WARNING": "\x1b[33m", "ERROR": "\x1b[31m", "CRITICAL": "\x1b[31m"}


def redact(text: str) -> str:
    """The text with credential-like parts redacted, truncated to a bounded length."""
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return _SECRET.sub("[redacted]", cut)


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD and not key.startswith("_")}


class JsonFormatter(logging.Formatter):
    """`{"ts": …, "level": …, "logger": …, "msg": …}` and the extra fields."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": redact(record.getMessage()),
        }
        for key, value in _extras(record).items():
            line[key] = value if isinstance(value, int | float | bool) or value is None else redact(str(value))
        if record.exc_info:
            line["error"] = redact(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)


class HumanFormatter(logging.Formatter):
    """`12:04:05 warning  message`, with coloured levels on a terminal that has colours."""

    def __init__(self, *, colour: bool) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        clock = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        level = record.levelname.lower()
        colour = _COLOURS.get(record.levelname, "") if self._colour else ""
        reset = _RESET if colour else ""
        text = f"{clock} {colour}{level:<8}{reset} {redact(record.getMessage())}"
        if record.exc_info:
            text += "\n" + redact(self.formatException(record.exc_info))
        return text


def configure(
    *,
    level: int = logging.INFO,
    json_lines: bool | None = None,
    stream: TextIO | None = None,
    file: Path | None = None,
) -> None:
    """Send all logs to `file`, whose size is bounded (the part before is kept in FILE.1), or else to `stream` (stderr).
    `json_lines` None means: JSON unless the stream is a terminal. Repeated messages are left out, unless the level is
    DEBUG."""
    out = stream or sys.stderr
    terminal = file is None and out.isatty()
    if json_lines is None:
        json_lines = not terminal
    handler: logging.Handler = logging.StreamHandler(out)
    if file is not None:
        handler = RotatingFileHandler(file, maxBytes=_FILE_BYTES, backupCount=1, encoding="utf-8")
    handler.setFormatter(JsonFormatter() if json_lines else HumanFormatter(colour=terminal))
    if level > logging.DEBUG:
        handler.addFilter(Repeats())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    # Libraries log one line per request or per retry, which is too much for users at any level.
    for name in ("aiohttp", "asyncio", "uvicorn", "kubernetes", "urllib3"):
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
