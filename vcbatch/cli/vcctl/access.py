"""The server of the commands: `--master`, `--kubeconfig` and `--context`, or the configured one."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from vcbatch.cli.base.output import CliError
from vcbatch.cli.base.reach import Access
from vcbatch.cli.vcctl.flags import Given
from vcbatch.interfaces.api import Api

T = TypeVar("T")


def once(given: Given, work: Callable[[Api], Coroutine[Any, Any, T]]) -> T:
    """Run `work` on the server that the flags name. Raises `CliError`."""
    kubeconfig = given.text("kubeconfig")
    access = Access(
        kubeconfig=Path(kubeconfig) if kubeconfig else None,
        context=given.text("context") or None,
        server=given.text("master") or None,
    )
    return access.once(work)


def required(given: Given, name: str, otherwise: str) -> str:
    """The value of a required flag. Raises `CliError` with the message `otherwise`."""
    value = given.text(name)
    if not value:
        raise CliError(otherwise, hint=f"Give it with --{name}.")
    return value
