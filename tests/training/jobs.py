"""Example jobs as tests submit and watch them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.support.up import RunningVcbatch

Json = dict[str, Any]
EXAMPLES = Path(__file__).parents[2] / "examples"
_PATIENCE = 240.0
_ENDED = ("Completed", "Failed", "Aborted", "Terminated")


def documents(manifest: str, *, replace: Mapping[str, str] | None = None) -> list[Json]:
    """An example's objects, with some of its text replaced."""
    text = (EXAMPLES / manifest).read_text(encoding="utf-8")
    for old, new in (replace or {}).items():
        assert old in text, f"{manifest} has no {old}"
        text = text.replace(old, new)
    return list(yaml.safe_load_all(text))


def submit(running: RunningVcbatch, objects: list[Json]) -> None:
    running.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects)).ok()


def job_of(running: RunningVcbatch, name: str) -> Json:
    return json.loads(running.kubectl("get", "vcjob", name, "-o", "json").ok())


def to_the_end(running: RunningVcbatch, job: str, phase: str = "Completed") -> Json:
    """The job once it has ended, which must be in this phase."""
    ended: Json = {}

    def look() -> bool:
        ended.update(job_of(running, job))
        return ended.get("status", {}).get("state", {}).get("phase") in _ENDED

    until(look, lambda: f"{job} doesn't end:\n{described(running)}")
    assert ended["status"]["state"]["phase"] == phase, described(running)
    return ended


def until_log(running: RunningVcbatch, pod: str, pattern: str) -> re.Match[str]:
    """The first match of a pattern in a pod's log, once it is there."""
    found: list[re.Match[str]] = []
    said = ""

    def look() -> bool:
        nonlocal said
        said = running.kubectl("logs", pod, "--ignore-errors").out
        found.extend(re.finditer(pattern, said, re.MULTILINE))
        return bool(found)

    until(look, lambda: f"{pod} doesn't say {pattern}:\n{said[-4000:]}\n{described(running)}")
    return found[0]


def until(look: Callable[[], bool], complaint: Callable[[], str]) -> None:
    end = time.monotonic() + _PATIENCE
    while not look():
        assert time.monotonic() < end, complaint()
        time.sleep(0.2)


def described(running: RunningVcbatch) -> str:
    """What is there, for the person who reads why a test failed."""
    objects = running.kubectl("get", "vcjob,pods", "-o", "yaml").out
    names = running.kubectl("get", "pods", "-o", "name").out.split()
    logs = [f"--- {name}\n{running.kubectl('logs', name, '--tail=25').out}" for name in names]
    return objects[-6000:] + "\n".join(logs)
