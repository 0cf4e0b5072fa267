"""The named checks of a program and their output: like kube-apiserver's `/readyz`, with reasons.

Source of the format: apiserver `pkg/server/healthz/healthz.go`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from http import HTTPStatus

from vcbatch.hosting.plain_http import Answer

log = logging.getLogger(__name__)

Check = Callable[[], str]
"""Returns the error, "" where there is none. May be called from any thread."""

_TEXT = "text/plain; charset=utf-8"
_LONGEST_REASON = 500


class Checks:
    """Checks by name, in their order."""

    def __init__(self, title: str, checks: Mapping[str, Check] | None = None) -> None:
        """`title` is the path of the checks, without the slash: `readyz`."""
        self.title = title
        self._checks = dict(checks or {})

    def __contains__(self, name: str) -> bool:
        return name in self._checks

    def put(self, name: str, check: Check) -> None:
        """Add a check, or replace the one of that name."""
        self._checks = {**self._checks, name: check}  # a new dict: another thread may be reading the old one

    def errors(self, *, without: Collection[str] = ()) -> Mapping[str, str]:
        """The error of each check, "" where it passes."""
        return {name: _asked(name, check) for name, check in self._checks.items() if name not in without}

    def answer(self, query: Mapping[str, Sequence[str]]) -> Answer:
        """The result of all checks, except those that `?exclude=NAME` names: 200 where none fails. The checks are
        listed where one fails, and with `?verbose`."""
        excluded = {name for names in query.get("exclude", ()) for name in names.split(",")}
        errors = self.errors(without=excluded)
        failed = any(errors.values())
        if not failed and "verbose" not in query:
            return Answer(HTTPStatus.OK, _TEXT, b"ok")
        lines = [_line(name, errors.get(name)) for name in self._checks]
        lines += [f"warn: no check is named {name[:100]}" for name in sorted(excluded - self._checks.keys())]
        lines.append(f"{self.title} check {'failed' if failed else 'passed'}")
        return Answer(_code(failed), _TEXT, ("\n".join(lines) + "\n").encode())

    def answer_one(self, name: str) -> Answer:
        """The result of that check alone; 404 where there is none of that name."""
        check = self._checks.get(name)
        if check is None:
            return Answer(HTTPStatus.NOT_FOUND, _TEXT, b"404: no such check")
        error = _asked(name, check)
        return Answer(_code(bool(error)), _TEXT, (error or "ok").encode())


def _line(name: str, error: str | None) -> str:
    if error is None:
        return f"[+]{name} excluded: ok"
    return f"[-]{name} failed: {error}" if error else f"[+]{name} ok"


def _code(failed: bool) -> int:
    return HTTPStatus.SERVICE_UNAVAILABLE if failed else HTTPStatus.OK


def _asked(name: str, check: Check) -> str:
    try:
        return " ".join(check().split())[:_LONGEST_REASON]
    except Exception:
        log.exception("the check %s failed", name)
        return "it can't be carried out"
