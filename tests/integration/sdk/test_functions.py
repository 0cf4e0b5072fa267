"""Python functions as jobs, on the local server as a user has it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from vcbatch import Client, ResultUnavailable, TaskFailed, VcbatchError, task

LONG = 120.0


@task
def power(base: int, exponent: int = 2) -> int:
    print(f"{base} to the {exponent}")  # noqa: T201
    return base**exponent


@task(retries=1)
def picky(number: int) -> int:
    if number == 2:
        raise ValueError("not two")
    return number


@task
def dies() -> None:
    os._exit(7)


def test_a_function_runs_here_and_as_a_job(client: Client):
    assert power(3) == 9
    handle = client.submit(power, 3, exponent=4)
    assert handle.result(timeout=LONG) == 81
    assert [line.text for line in handle.logs()] == ["3 to the 4"]
    folder = handle._call.folder.here
    assert folder.stat().st_mode & 0o077 == 0
    handle.delete()
    assert not folder.exists()


def test_what_it_raises_is_raised_here(client: Client):
    with pytest.raises(TaskFailed, match="not two") as caught:
        client.submit(picky.options(retries=0), 2).result(timeout=LONG)
    assert isinstance(caught.value.__cause__, ValueError)
    assert "picky" in caught.value.traceback


def test_one_that_ends_without_a_result_says_how(client: Client):
    with pytest.raises(ResultUnavailable, match="exit code 7"):
        client.submit(dies).result(timeout=LONG)


def test_a_map_is_one_job(client: Client):
    handle = client.map(power.options(at_most=2), [1, 2, 3], [3, 2, 1])
    assert handle.results(timeout=LONG) == [1, 4, 3]
    again = client.attach(handle.name)
    assert again.results(timeout=LONG) == [1, 4, 3]


def test_a_call_that_fails_leaves_the_others_their_results(client: Client):
    handle = client.map(picky.options(retries=0), [1, 2, 3])
    one, two, three = handle.outcomes(timeout=LONG)
    assert (one, three) == (1, 3)
    assert isinstance(two, TaskFailed) and two.index == 1
    with pytest.raises(TaskFailed):
        handle.results(timeout=LONG)


def test_a_function_of_a_script_takes_along_what_it_refers_to(state_dir: Path, tmp_path: Path):
    script = tmp_path / "sweep.py"
    script.write_text(
        "from vcbatch import Client, task\n"
        "SCALE = 10\n"
        "def helper(x): return x * SCALE\n"
        "@task\n"
        "def scaled(x: int) -> int: return helper(x)\n"
        f"with Client.local(state_dir={str(state_dir)!r}) as client:\n"
        "    print(client.map(scaled, range(3)).results(timeout=100))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=150, check=False)
    assert done.stdout == "[0, 10, 20]\n", done.stderr
    assert done.stderr == ""


def test_what_cannot_be_sent_is_refused_before_anything_is_made(client: Client):
    with pytest.raises(VcbatchError, match="can't be pickled"):
        client.submit(power, threading.Lock())  # type: ignore[arg-type]
    with pytest.raises(VcbatchError, match="0 calls"):
        client.map(power, [])
    with pytest.raises(VcbatchError, match="doesn't run a function"):
        from vcbatch import Job, Task

        client.submit(Job(name="plain", tasks=[Task(name="w", image="x", command=["true"])]))
        client.attach("plain")
