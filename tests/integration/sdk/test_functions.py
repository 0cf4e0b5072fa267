"""Python functions as jobs, on the local server as a user has it."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from vcbatch import Client, JobPhase, ResultUnavailable, TaskFailed, VcbatchError, task

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


def surroundings() -> tuple[str, str, str, int]:
    mask = os.umask(0)
    os.umask(mask)
    return os.environ.get("TOKEN", ""), os.environ.get("SEED", ""), os.environ.get("RANK", ""), mask


@pytest.mark.parametrize(
    ("export", "want"), [("ALL", ("mine", "", "")), ("NONE", ("", "", "")), ("SEED=7", ("", "7", ""))]
)
def test_a_function_runs_in_the_environment_of_its_program(
    client: Client, state_dir: Path, monkeypatch: pytest.MonkeyPatch, export: str, want: tuple[str, ...]
):
    monkeypatch.setenv("TOKEN", "mine")
    monkeypatch.setenv("RANK", "3")
    before = os.umask(0o027)
    try:
        handle = client.submit(task(export=export)(surroundings))
    finally:
        os.umask(before)
    assert handle.result(timeout=LONG) == (*want, 0o027)
    assert "mine" not in str(handle.get().to_manifest())
    stored = state_dir / "environments" / handle.get().annotations["vcbatch.dev/environment"]
    assert stored.exists()
    handle.delete()
    deadline = time.monotonic() + LONG
    while stored.exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_an_export_that_is_invalid_submits_nothing(client: Client, state_dir: Path):
    before = sorted((state_dir / "calls").glob("*"))
    with pytest.raises(ValueError, match="NO_SUCH_VARIABLE is not set"):
        client.submit(task(export="NO_SUCH_VARIABLE")(surroundings))
    assert sorted((state_dir / "calls").glob("*")) == before


def test_any_function_will_do(client: Client):
    assert client.submit(divmod, 7, 2).result(timeout=LONG) == (3, 1)
    assert client.map(lambda text: text.upper(), ["a", "b"]).results(timeout=LONG) == ["A", "B"]


def test_what_it_raises_is_raised_here(client: Client):
    with pytest.raises(TaskFailed, match="not two") as caught:
        client.submit(picky.options(retries=0), 2).result(timeout=LONG)
    assert isinstance(caught.value.__cause__, ValueError)
    assert "picky" in caught.value.traceback


@task(retries=2)
def flaky(number: int, marks: Path) -> int:
    """Fails once for each number; 3 fails for ever."""
    mark = marks / str(number)
    if number == 3 or not mark.exists():
        mark.touch()
        raise RuntimeError(f"not {number}")
    return number


def test_calls_that_fail_are_made_again_each_for_itself(client: Client, tmp_path: Path):
    handle = client.map(flaky, range(6), [tmp_path] * 6)
    *others, last = sorted(handle.outcomes(timeout=LONG), key=lambda outcome: isinstance(outcome, TaskFailed))
    assert others == [0, 1, 2, 4, 5]
    assert isinstance(last, TaskFailed) and last.index == 3


def test_one_that_was_cancelled_says_so(client: Client):
    handle = client.submit(time.sleep, 600)
    handle.wait(until="Running", timeout=LONG)
    handle.cancel()
    with pytest.raises(ResultUnavailable, match="the job is Terminated"):
        handle.result(timeout=LONG)


def test_one_that_ends_without_a_result_says_how(client: Client):
    with pytest.raises(ResultUnavailable, match="exit code 7"):
        client.submit(dies).result(timeout=LONG)


def test_a_call_that_takes_too_long_is_ended_and_stops_no_other(client: Client):
    slow, quick = client.map(task(time.sleep).options(time_limit=1), [600, 0]).outcomes(timeout=LONG)
    assert quick is None
    assert isinstance(slow, ResultUnavailable)
    assert str(slow).startswith("call 0 ran longer than its time limit")
    with pytest.raises(ResultUnavailable, match="call 0 ran longer than its time limit"):
        client.submit(task(time.sleep).options(time_limit="1s", retries=3), 600).result(timeout=LONG)


def hoards() -> None:
    held = b"x" * (400 * 2**20)
    time.sleep(600)
    del held


def test_a_call_that_takes_too_much_memory_says_so(client: Client):
    with pytest.raises(ResultUnavailable, match="call 0 was killed for using more memory than it may") as caught:
        client.submit(task(hoards).options(memory="100Mi")).result(timeout=LONG)
    assert caught.value.exit_code == 137


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
    assert handle.get().phase is JobPhase.FAILED
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
    with pytest.raises(VcbatchError, match="nothing to call"):
        client.map(power, [])
    with pytest.raises(VcbatchError, match="more than 10000"):
        client.map(power, itertools.count())
    with pytest.raises(TypeError, match=r"power\(\): missing"):
        client.submit(power)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"got 'job\.yaml'"):
        client.submit("job.yaml")  # type: ignore[call-overload]
    with pytest.raises(VcbatchError, match="doesn't run a function"):
        from vcbatch import Job, Task

        client.submit(Job(name="plain", tasks=[Task(name="w", image="x", command=["true"])]))
        client.attach("plain")
