"""/healthz, /livez and /readyz. Source: apiserver `pkg/server/healthz/healthz.go`.

A server that answers is alive. It is ready while all background tasks of the process work. Unlike Kubernetes, which
says "reason withheld", it reports the reason to administrators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vcbatch.hosting.health import Health
from vcbatch.local.apiserver.access import User
from vcbatch.local.apiserver.response import Response, text_response

_CHECKS = ("healthz", "livez", "readyz")


def health_response(
    path: str, query: Mapping[str, Sequence[str]], user: User, health: Health | None
) -> Response | None:
    """The response to a health request; None for every other path."""
    check, _, single = path.removeprefix("/").partition("/")
    if check not in _CHECKS or not path.startswith("/"):
        return None
    if single or path.endswith("/"):
        return text_response("ok") if single == "ping" else None
    errors = health.errors() if check == "readyz" and health is not None else {}
    if not errors and "verbose" not in query:
        return text_response("ok")
    lines = ["[+]ping ok"]
    lines += [f"[-]{name} failed: {why if user.administrator else 'reason withheld'}" for name, why in errors.items()]
    lines.append(f"{check} check {'failed' if errors else 'passed'}")
    return text_response("\n".join(lines) + "\n", code=500 if errors else 200)
