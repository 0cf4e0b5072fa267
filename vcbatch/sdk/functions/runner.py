"""Runs one call of a function in a pod: `python run.py`, from a copy of this file beside the call.

Needs nothing but Python and cloudpickle, so that any image with these will do.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import traceback
from pathlib import Path
from typing import Any


def main(folder: Path, index: int) -> int:
    """Exit code 0 where the function returned, 1 where it raised, 3 where it couldn't be called."""
    settings = json.loads((folder / "call.json").read_text())
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    if here != settings["python"]:
        return _give_up(folder, index, f"it was sent from Python {settings['python']}, and runs on {here} here")
    sys.path[:] = [*(path for path in settings["path"] if path not in sys.path and Path(path).exists()), *sys.path]
    try:
        import cloudpickle
    except ModuleNotFoundError:
        return _give_up(folder, index, "cloudpickle isn't installed here: pip install cloudpickle")
    try:
        function = pickle.loads((folder / "function.pkl").read_bytes())  # noqa: S301 - that is what this is for
        arguments, keywords = pickle.loads((folder / f"call-{index}.pkl").read_bytes())  # noqa: S301
    except Exception as error:
        return _give_up(folder, index, f"it can't be loaded: {error!r}")
    try:
        value = function(*arguments, **keywords)
        data = cloudpickle.dumps(value)
    except Exception as error:
        text = traceback.format_exc()
        sys.stderr.write(text)
        _leave(folder, index, {"failed": repr(error)[:1000], "traceback": text[-20_000:]}, _pickled(cloudpickle, error))
        return 1
    _leave(folder, index, {}, data)
    return 0


def _pickled(cloudpickle: Any, error: Exception) -> bytes:
    try:
        data: bytes = cloudpickle.dumps(error)
        pickle.loads(data)  # noqa: S301 - many exceptions can be written and not read
    except Exception:
        return b""
    return data


def _give_up(folder: Path, index: int, why: str) -> int:
    sys.stderr.write(f"{why}\n")
    _leave(folder, index, {"unavailable": why}, b"")
    return 3


def _leave(folder: Path, index: int, head: dict[str, str], data: bytes) -> None:
    """Whole or not at all: nobody reads half a result. A call that is made again replaces what it left before."""
    temporary = folder / f".result-{index}-{os.getpid()}"
    with temporary.open("wb") as file:
        file.write(json.dumps(head).encode() + b"\n" + data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / f"result-{index}")


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent, int(os.environ.get("VC_TASK_INDEX", "0"))))
