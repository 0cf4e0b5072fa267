"""Trains, saves its state when it is preempted, and resumes from there.

vcbatch run --signal USR1@60 examples/checkpoint.py --steps 600 --checkpoint checkpoint.json
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from pathlib import Path

PREEMPTED = 75  # any code other than 0: the work isn't done


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--checkpoint", type=Path, default=Path("checkpoint.json"))
    options = parser.parse_args()
    stop = False

    def request_stop(*_: object) -> None:
        nonlocal stop
        stop = True

    signal.signal(signal.SIGUSR1, request_stop)
    state = {"step": 0, "starts": 0}
    if options.checkpoint.exists():
        state = json.loads(options.checkpoint.read_text())
    state["starts"] += 1
    print(f"start {state['starts']} at step {state['step']}", flush=True)
    while state["step"] < options.steps and not stop:
        time.sleep(0.1)  # one step of the training
        state["step"] += 1
    save(options.checkpoint, state)
    print(f"saved at step {state['step']}", flush=True)
    return PREEMPTED if stop else 0


def save(path: Path, state: dict[str, int]) -> None:
    """Replace the checkpoint, so that an interrupted write leaves the former one."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(state))
    new.replace(path)


if __name__ == "__main__":
    sys.exit(main())
