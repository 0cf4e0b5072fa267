"""The calls of a function and their results, as files that this machine and the pods share.

This machine writes `function.pkl` and `call-N.pkl`, `run.py` runs one call in a pod, which writes `result-N`: a line of
JSON with the outcome, and then the pickled return value or exception.
"""

from __future__ import annotations

import importlib.resources
import json
import pickle
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcbatch.sdk.errors import ResultUnavailable, TaskFailed, VcbatchError

MOST_CALLS = 10_000
_MOST_BYTES = 2 * 1024**3
_TOKEN = re.compile(r"[a-z0-9]{8,64}")
_SETTLE_SECONDS = 15.0
"""How long a file that was written elsewhere may take to appear here, as on NFS."""

Call = tuple[tuple[Any, ...], Mapping[str, Any]]


class NoResult(ResultUnavailable):
    """The result file doesn't exist: the end of the pod has the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFolder:
    """A directory on a PersistentVolumeClaim that this machine can access too, through which functions are sent to a
    cluster and results returned: `here` is its path on this machine, `mount_path` the path where pods mount the claim.

    Every user who can write there can run programs as you: results are unpickled.
    """

    claim: str
    here: str | Path
    mount_path: str = "/vcbatch"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFolder:
    """The directory of one job: `here` on this machine, `there` in its pods."""

    here: Path
    there: str
    remote: bool

    @classmethod
    def at(cls, token: str, *, state_dir: Path | None, shared: SharedFolder | None) -> CallFolder:
        """The directory for a token. Raises `VcbatchError` where no directory is shared by both sides."""
        if not _TOKEN.fullmatch(token):
            raise VcbatchError(f"{token!r} is no name of a folder with calls")
        if shared is not None:
            here = Path(shared.here).expanduser().absolute() / f"calls-{token}"
            return cls(here=here, there=f"{shared.mount_path.rstrip('/')}/calls-{token}", remote=True)
        if state_dir is None:
            raise VcbatchError(
                "a function on a cluster needs a folder that its pods and this machine both see",
                hint="Name it: fn.options(shared=SharedFolder(claim=..., here=...), image=...).",
            )
        here = state_dir / "calls" / token
        return cls(here=here, there=str(here), remote=False)

    def write(self, function: Callable[..., Any], calls: Sequence[Call], *, retries: int = 0) -> None:
        """Write the files of these calls. Raises `VcbatchError` for objects that can't be pickled."""
        import cloudpickle

        if not calls:
            raise VcbatchError("there is nothing to call the function with")
        if len(calls) > MOST_CALLS:
            raise VcbatchError(f"more than {MOST_CALLS} calls for one job", hint="Make several maps of them.")
        self.here.mkdir(parents=True, mode=0o755 if self.remote else 0o700)
        try:
            (self.here / "function.pkl").write_bytes(_pickled(cloudpickle, function, "the function"))
            for index, call in enumerate(calls):
                what = f"the arguments of call {index}"
                (self.here / f"call-{index}.pkl").write_bytes(_pickled(cloudpickle, call, what))
            settings = {
                "python": f"{sys.version_info.major}.{sys.version_info.minor}",
                "path": [path for path in sys.path if path],
                "calls": len(calls),
                "retries": retries,
            }
            (self.here / "call.json").write_text(json.dumps(settings))
            runner = importlib.resources.files("vcbatch.sdk.functions").joinpath("runner.py").read_bytes()
            (self.here / "run.py").write_bytes(runner)
        except BaseException:
            self.remove()
            raise

    def calls(self) -> int:
        """The number of calls. Raises `ResultUnavailable`."""
        try:
            return int(json.loads((self.here / "call.json").read_text())["calls"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ResultUnavailable(f"{self.here} has no calls any more: {error}") from error

    def results(self, indices: Iterable[int]) -> list[Any]:
        """The result of each ended call: its return value, `TaskFailed` where it raised, or `ResultUnavailable` where
        there is no result."""
        deadline = time.monotonic() + (_SETTLE_SECONDS if self.remote else 0.0)
        found: list[Any] = []
        for index in indices:
            try:
                found.append(self._result(index, deadline))
            except (TaskFailed, ResultUnavailable) as error:
                found.append(error)
        return found

    def _result(self, index: int, deadline: float) -> Any:
        head, data = self._read(index, deadline)
        if why := head.get("unavailable"):
            raise ResultUnavailable(f"call {index} has no result: {why}", index=index)
        value = _loaded(data, index) if data or not head else None
        if not head:
            return value
        failed = TaskFailed(
            f"call {index} raised {head.get('failed', 'an exception')}",
            hint="handle.logs() shows what it printed.",
            index=index,
            traceback=str(head.get("traceback", "")),
        )
        failed.add_note(f"\nIn its pod:\n{failed.traceback}")
        raise failed from (value if isinstance(value, BaseException) else None)

    def _read(self, index: int, deadline: float) -> tuple[dict[str, Any], bytes]:
        file = self.here / f"result-{index}"
        while not file.exists():
            if time.monotonic() >= deadline:
                hint = "handle.logs() shows what it printed, handle.events() what happened to its pod."
                raise NoResult(f"call {index} ended without a result", hint=hint, index=index)
            time.sleep(0.2)
        if file.stat().st_size > _MOST_BYTES:
            why = f"the result of call {index} has {file.stat().st_size} bytes, more than {_MOST_BYTES}"
            raise ResultUnavailable(why, hint=f"It is in {file}. Return the path of a file instead.", index=index)
        line, _, data = file.read_bytes().partition(b"\n")
        try:
            return json.loads(line), data
        except ValueError as error:
            raise ResultUnavailable(f"{file} isn't a result: {error}", index=index) from error

    def remove(self) -> None:
        """Delete the directory; errors are ignored."""
        shutil.rmtree(self.here, ignore_errors=True)


def _pickled(cloudpickle: Any, value: Any, what: str) -> bytes:
    try:
        data: bytes = cloudpickle.dumps(value)
    except Exception as error:  # an object's own pickling may raise anything
        hint = "Open files, connections and locks can't be sent: make them inside the function."
        raise VcbatchError(f"{what} can't be pickled: {error}", hint=hint) from error
    return data


def _loaded(data: bytes, index: int) -> Any:
    try:
        return pickle.loads(data)  # noqa: S301 - from a directory of the user's own, see SharedFolder
    except Exception as error:
        hint = "Does this program have the modules that the result is made of?"
        why = f"the result of call {index} can't be loaded: {error!r}"
        raise ResultUnavailable(why, hint=hint, index=index) from error
