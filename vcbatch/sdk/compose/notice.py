"""A signal before the end of a pod, for programs that save their state: as `sbatch --signal`, by a preStop hook."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from vcbatch.api.model import Json
from vcbatch.sdk.compose.request import CannotCompose

POD_UID: Final = "VC_POD_UID"
"""The variable by which the hook recognizes the processes of its pod: in local mode others may be visible."""

_NUMBERS: Final[Mapping[str, int]] = {"HUP": 1, "INT": 2, "USR1": 10, "USR2": 12, "TERM": 15}
_FORM: Final = re.compile(r"(?:SIG)?([A-Z0-9]+)(?:@(\d{1,6}))?", re.ASCII)
_DEFAULT_SECONDS: Final = 60
_LONGEST_SECONDS: Final = 65535
_SECONDS_AFTER_TERM: Final = 30
"""The grace period of SIGTERM, which follows: the default of Kubernetes."""

_MARK: Final = "VC_SIGNAL_HOOK"
_HOOK: Final = r"""
nl='
'
for d in /proc/[0-9]*; do
  e=$({ tr '\0' '\n' <"$d/environ"; } 2>/dev/null) || continue
  case "$nl$e$nl" in
  *"${nl}VC_SIGNAL_HOOK="*) continue ;;
  *"${nl}VC_POD_UID=$VC_POD_UID$nl"*) ;;
  *) continue ;;
  esac
  m=
  { while read -r k v; do [ "$k" = SigCgt: ] && m=$v; done <"$d/status"; } 2>/dev/null
  [ -n "$m" ] && [ $(((0x${m#????????} >> ($2 - 1)) & 1)) = 1 ] || continue
  case "$nl$e" in
  *"${nl}LOCAL_RANK="*) ranks="$ranks ${d#/proc/}" ;;
  *) others="$others ${d#/proc/}" ;;
  esac
done
chosen=${ranks:-$others}
[ -n "$chosen" ] || exit 0
kill -s "$1" $chosen 2>/dev/null
n=$3
while [ "$n" -gt 0 ]; do
  alive=
  for p in $chosen; do kill -0 "$p" 2>/dev/null && alive=1; done
  [ -n "$alive" ] || exit 0
  sleep 1
  n=$((n - 1))
done
"""
"""Sends the signal $1, with the number $2, to every process of the pod that handles it, or to the ranks among them, and
waits at most $3 seconds for their end. Others would die of it: a shell, the launcher, workers of a data loader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A signal, by its name without SIG, that precedes SIGTERM by `seconds`."""

    name: str
    seconds: int

    @staticmethod
    def parse(text: str) -> Notice:
        """Parse `USR1@60`, `SIGUSR1@60`, or `USR1` with the default of 60 seconds. Raises `CannotCompose`."""
        found = _FORM.fullmatch(text.upper())
        if found is None or found[1] not in _NUMBERS:
            names = ", ".join(_NUMBERS)
            raise CannotCompose("signal", f"invalid signal {text!r}: must be NAME[@SECONDS] with one of {names}")
        seconds = _DEFAULT_SECONDS if found[2] is None else int(found[2])
        if not 1 <= seconds <= _LONGEST_SECONDS:
            raise CannotCompose("signal", f"must be 1 to {_LONGEST_SECONDS} seconds before the end, got {seconds}")
        return Notice(name=found[1], seconds=seconds)

    def apply(self, pod: Json) -> None:
        """Add the hook to each container of a pod (its spec), and the grace period that it needs."""
        number = str(_NUMBERS[self.name])
        command = ["env", f"{_MARK}=1", "sh", "-c", _HOOK, "sh", self.name, number, str(self.seconds)]
        uid = {"name": POD_UID, "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}
        for container in pod["containers"]:
            container["lifecycle"] = {"preStop": {"exec": {"command": command}}}
            container["env"] = [*container.get("env", ()), uid]
        pod["terminationGracePeriodSeconds"] = self.seconds + _SECONDS_AFTER_TERM
