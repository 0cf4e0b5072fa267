"""Commands that a message suggests, with the options by which this command chose its server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_COMMAND: Final = re.compile(
    r"(?<=`)(?:vcbatch|kubectl) [^`\n]+(?=`)|(?:(?<=: )|^ *)(?:vcbatch|kubectl) [^`\n]+$", re.MULTILINE
)
"""A command is in backquotes, or at the end of a line, after a colon or alone."""
_LOCAL: Final = frozenset({"up", "down", "status"})
_CLUSTER_WIDE: Final = frozenset({"cluster", "hypernode", "install", "migrate", "queue", "snapshot", "uninstall"})
_NAMESPACED: Final = frozenset(
    {
        *("run", "job", "wait", "apply", "delete", "jobflow", "jobtemplate", "cronjob", "pod", "doctor"),
        *("ps", "logs", "cancel", "submit", "top", "shell", "accounting"),
    }
)
_SPELLINGS: Final[Mapping[str, tuple[str, ...]]] = {"--namespace": ("-n", "--namespace")}


def with_options(
    text: str,
    *,
    kubeconfig: Path | None = None,
    context: str | None = None,
    namespace: str | None = None,
    state_dir: Path | None = None,
) -> str:
    """The text, with these options added to each command of vcbatch and kubectl that accepts them and lacks them."""
    server = {"--kubeconfig": kubeconfig, "--context": context}
    own = {**server, "--namespace": namespace}

    def completed(command: str) -> str:
        program, first = command.split()[:2]
        given: Mapping[str, Path | str | None] = {}
        if first in _LOCAL and program == "vcbatch":
            given = {"--state-dir": state_dir}
        elif first in _CLUSTER_WIDE and program == "vcbatch":
            given = server
        elif first in _NAMESPACED or (program == "kubectl" and first != "config"):
            given = own
        wanted = (_option(flag, value) for flag, value in given.items() if value and not _has(command, flag))
        return command + "".join(wanted)

    return _COMMAND.sub(lambda found: " | ".join(map(completed, found[0].split(" | "))), text)


def _has(command: str, flag: str) -> bool:
    words = command.split()
    return any(word.partition("=")[0] in _SPELLINGS.get(flag, (flag,)) for word in words)


def _option(flag: str, value: Path | str) -> str:
    import shlex  # imported only here: most commands end without such a message

    return f" {'-n' if flag == '--namespace' else flag} {shlex.quote(str(value))}"
