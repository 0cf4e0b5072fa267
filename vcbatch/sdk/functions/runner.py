"""Runs one call of a function in a pod: `python run.py`, a copy of this file in the directory of the call.

It needs only Python and cloudpickle, so that any image with these is suitable.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

_ONCE = "once"


def main(folder: Path, index: int, *, once: bool) -> int:
    """Run the call and return the exit code: 0 where the function returned, 1 where it raised, 3 where it couldn't be
    called or its return value couldn't be pickled, else that of the process."""
    settings = json.loads((folder / "call.json").read_text())
    retries = int(settings.get("retries", 0))
    if once or not retries:
        return _call(folder, index, settings)
    return _Tries(folder, index).run(1 + retries)


class _Tries:
    """Runs each attempt in a process of its own, so that one that crashes is retried too. A signal that ends this
    process ends the attempt, and no other follows."""

    def __init__(self, folder: Path, index: int) -> None:
        self._folder, self._index = folder, index
        self._try: subprocess.Popen[bytes] | None = None
        self._stopped = 0

    def run(self, most: int) -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        code = 1
        for number in range(1, most + 1):
            flags = ["-P"] if getattr(sys.flags, "safe_path", False) else []  # an image may have an older Python
            self._try = subprocess.Popen([sys.executable, *flags, __file__, _ONCE])
            if self._stopped:
                self._try.send_signal(self._stopped)
            code = self._try.wait()
            if code == 0 or self._stopped or self._hopeless():
                break
            sys.stderr.write(f"try {number} of {most} ended with {_ended(code)}\n")
        return code if code >= 0 else 128 - code

    def _stop(self, number: int, _: object) -> None:
        self._stopped = number
        if self._try is not None:
            self._try.send_signal(number)

    def _hopeless(self) -> bool:
        """Whether the next attempt would end in the same way, since the function isn't the cause."""
        try:
            with _result(self._folder, self._index).open("rb") as file:
                return "unavailable" in json.loads(file.readline())
        except (OSError, ValueError):
            return False


def _ended(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def _call(folder: Path, index: int, settings: dict[str, Any]) -> int:
    _result(folder, index).unlink(missing_ok=True)  # of an earlier attempt
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    if here != settings["python"]:
        return _give_up(folder, index, f"it was sent from Python {settings['python']}, and runs on {here} here")
    sys.path[:] = [*(path for path in settings["path"] if path not in sys.path and Path(path).exists()), *sys.path]
    try:
        import cloudpickle
    except ModuleNotFoundError:
        return _give_up(folder, index, "cloudpickle isn't installed here: pip install cloudpickle")
    try:
        function = pickle.loads((folder / "function.pkl").read_bytes())  # noqa: S301 - the purpose
        arguments, keywords = pickle.loads((folder / f"call-{index}.pkl").read_bytes())  # noqa: S301
    except Exception as error:
        return _give_up(folder, index, f"it can't be loaded: {error!r}")
    try:
        value = function(*arguments, **keywords)
    except Exception as error:
        # The frame of this file is of no interest.
        error.__traceback__ = error.__traceback__.tb_next if error.__traceback__ is not None else None
        text = "".join(traceback.format_exception(error))
        sys.stderr.write(text)
        _leave(folder, index, {"failed": repr(error)[:1000], "traceback": text[-20_000:]}, _pickled(cloudpickle, error))
        return 1
    try:
        data = cloudpickle.dumps(value)
    except Exception as error:
        what = f"{type(value).__module__}.{type(value).__qualname__}"
        return _give_up(folder, index, f"what it returned, a {what}, can't be pickled: {error}")
    _leave(folder, index, {}, data)
    return 0


def _pickled(cloudpickle: Any, error: Exception) -> bytes:
    try:
        data: bytes = cloudpickle.dumps(error)
        pickle.loads(data)  # noqa: S301 - many exceptions can be pickled and not unpickled
    except Exception:
        return b""
    return data


def _give_up(folder: Path, index: int, why: str) -> int:
    sys.stderr.write(f"{why}\n")
    _leave(folder, index, {"unavailable": why}, b"")
    return 3


def _leave(folder: Path, index: int, head: dict[str, str], data: bytes) -> None:
    """Write the result file atomically: no reader sees half a result. A retried call replaces its earlier result."""
    temporary = folder / f".result-{index}-{os.getpid()}"
    with temporary.open("wb") as file:
        file.write(json.dumps(head).encode() + b"\n")
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(_result(folder, index))


def _result(folder: Path, index: int) -> Path:
    return folder / f"result-{index}"


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    sys.exit(main(here, int(os.environ.get("VC_TASK_INDEX", "0")), once=_ONCE in sys.argv[1:]))
