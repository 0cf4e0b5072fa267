"""Run the gang of job.json beside this file to Completed: what the pod of `helm test` does.

The argument is how many seconds that may take. Ends with 1 where it isn't Completed, after why, what happened and what
its pods printed. The job is deleted either way.
"""

from __future__ import annotations

import json
import signal
import sys
from itertools import islice
from pathlib import Path

from vcbatch import Client, VcbatchError
from vcbatch.sdk.job import JobHandle

_MOST_LINES = 200


def say(text: object) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def tell(handle: JobHandle) -> None:
    """What happened, and what the pods printed, as far as it can be had."""
    for title, lines in (("events", handle.events), ("logs", handle.logs)):
        say(f"--- {title}")
        try:
            for line in islice(lines(), _MOST_LINES):
                say(line)
        except VcbatchError as error:
            say(f"not to be had: {error}")


def run(client: Client, manifest: dict[str, object], seconds: float) -> int:
    handle = client.submit(manifest)
    say(f"submitted {handle.namespace}/{handle.name}")
    try:
        handle.wait(until="Completed", timeout=seconds, on_change=lambda job: say(f"{job.phase} {job.status.running}"))
    except VcbatchError as error:
        say(f"error: {error}")
        tell(handle)
        return 1
    finally:
        handle.delete()
    say("Completed")
    return 0


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the job is deleted
    manifest = json.loads(Path(__file__).with_name("job.json").read_text(encoding="utf-8"))
    try:
        with Client() as client:
            return run(client, manifest, float(sys.argv[1]))
    except VcbatchError as error:
        say(f"error: {error}")
        return 1


if __name__ == "__main__":
    raise SystemExit(main())
