"""The init container in which a worker waits until its master's port accepts connections.

It connects with a program of its image: python3, perl, nc, bash or busybox. (`sh` alone can't: `/dev/tcp` is bash's
own.) The address is the one that the worker's own containers use: `MASTER_ADDR` and `MASTER_PORT`, whether a plugin or
the user set them; they are variables so that the local kubelet translates the port here as it does in the worker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from vcbatch.api import names
from vcbatch.core.job.plugins.framework import containers
from vcbatch.core.machine import Json

_REFERENCE: Final = re.compile(r"\$\(([^()$]+)\)")
_SCRIPT: Final = """\
master="$MASTER_ADDR:$MASTER_PORT"
has_z() { $1 -h 2>&1 </dev/null | grep -q -e '-z'; }
can_ask() {
  case $1 in
    python3) python3 -I -c 'import socket' ;;
    perl) perl -MIO::Socket::IP -e 1 ;;
    nc) has_z nc || timeout 3 true ;;
    bash) bash -c '[ -n "$BASH_VERSION" ]' ;;
    busybox) has_z 'busybox nc' || busybox timeout 3 true ;;
  esac >/dev/null 2>&1 </dev/null
}
# What can only connect, and then stays until the other side hangs up, is stopped after its time to connect.
connected() { [ "$1" -eq 0 ] || [ "$1" -eq 124 ] || [ "$1" -eq 137 ] || [ "$1" -eq 143 ]; }
ask() {
  case $by in
    python3)
      python3 -I -c 'import socket, sys
socket.create_connection((sys.argv[1], int(sys.argv[2])), 2).close()' "$MASTER_ADDR" "$MASTER_PORT" ;;
    perl)
      perl -MIO::Socket::IP -e 'exit !IO::Socket::IP->new(PeerHost => $ARGV[0], PeerPort => $ARGV[1], Timeout => 2)' \\
        "$MASTER_ADDR" "$MASTER_PORT" ;;
    nc)
      if has_z nc; then nc -z -w 2 "$MASTER_ADDR" "$MASTER_PORT"
      else timeout 3 nc -w 2 "$MASTER_ADDR" "$MASTER_PORT"; connected $?; fi ;;
    bash)
      if command -v timeout; then limit='timeout 2'; else limit=; fi
      $limit bash -c 'exec 3<>"/dev/tcp/$MASTER_ADDR/$MASTER_PORT"' ;;
    busybox)
      if has_z 'busybox nc'; then busybox nc -z -w 2 "$MASTER_ADDR" "$MASTER_PORT"
      else busybox timeout 3 busybox nc -w 2 "$MASTER_ADDR" "$MASTER_PORT"; connected $?; fi ;;
  esac >/dev/null 2>&1 </dev/null
}
by=
for each in python3 perl nc bash busybox; do
  if command -v $each >/dev/null 2>&1 && can_ask $each; then by=$each; break; fi
done
if [ -z "$by" ]; then
  echo "can't tell whether $master answers: this image has none of python3, perl, nc, bash and busybox;" \\
    "name one that has with --wait-master-image" >&2
  exit 1
fi
echo "waiting until $master answers, asking with $by"
end=$(( $(date +%s) + SECONDS_TO_WAIT ))
until ask; do
  if [ "$(date +%s)" -ge "$end" ]; then echo "$master didn't answer within SECONDS_TO_WAIT s" >&2; exit 1; fi
  sleep 1
done
"""


def wait_container(pod: Json, *, image: str, timeout: int, defaults: Mapping[str, str]) -> Json:
    """The container, for a pod whose own containers have their variables already. `defaults` are the master's address
    and port where none of the containers has them."""
    return {
        "name": names.WAIT_FOR_MASTER_CONTAINER,
        "image": image,
        "command": ["sh", "-c", _SCRIPT.replace("SECONDS_TO_WAIT", str(timeout))],
        "env": list(_variables(pod, defaults)),
    }


def _variables(pod: Json, defaults: Mapping[str, str]) -> Iterator[Json]:
    """The variables, each from the first container that has it: its entry, after those that its value refers to."""
    given: set[str] = set()
    for name, default in defaults.items():
        entries = next((found for each in containers(pod, init=False) if (found := _entries_for(name, each))), None)
        for entry in entries or [{"name": name, "value": default}]:
            if entry["name"] not in given:
                given.add(entry["name"])
                yield dict(entry)


def _entries_for(name: str, container: Json) -> list[Json]:
    """The entry of that name and the earlier ones that it needs, in their order; empty where there is none."""
    env: list[Json] = container.get("env") or []
    wanted, found = {name}, list[Json]()
    for entry in reversed(env):
        if entry.get("name") in wanted:
            found.append(entry)
            value: Any = entry.get("value")
            wanted |= set(_REFERENCE.findall(value)) if isinstance(value, str) else set()
    return found[::-1] if any(entry.get("name") == name for entry in found) else []
