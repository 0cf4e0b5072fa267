"""Example jobs as tests submit and watch them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.support.documents import ROOT, sections
from tests.support.up import RunningVcbatch

Json = dict[str, Any]
EXAMPLES = ROOT / "examples"
DOCUMENT = ROOT / "docs" / "examples.md"
_PATIENCE = 240.0
_ENDED = ("Completed", "Failed", "Aborted", "Terminated")


def documents(manifest: str, *, replace: Mapping[str, str] | None = None) -> list[Json]:
    """An example's objects, with some of its text replaced."""
    text = (EXAMPLES / manifest).read_text(encoding="utf-8")
    for old, new in (replace or {}).items():
        assert old in text, f"{manifest} has no {old}"
        text = text.replace(old, new)
    return list(yaml.safe_load_all(text))


def type_section(running: RunningVcbatch, title: str, folder: Path, *, replace: Mapping[str, str] | None = None) -> str:
    """Type what the document has below a heading, beside examples in which some text is replaced; what the last command
    printed comes back."""
    shutil.copytree(EXAMPLES, folder / "examples")
    for path in (folder / "examples").glob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        for old, new in (replace or {}).items():
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
    *lines, last = sections(DOCUMENT)[title]
    script = "\n".join(["set -e -x -o pipefail", *(f"{line} >&2" for line in lines), last])
    env = {**os.environ, "KUBECONFIG": str(running.kubeconfig), "KUBECACHEDIR": str(running.folder / "kubecache")}
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=env, capture_output=True, text=True, timeout=420, check=False
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{described(running)}"
    return done.stdout


def submit(running: RunningVcbatch, objects: list[Json]) -> None:
    running.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects)).ok()


def job_of(running: RunningVcbatch, name: str) -> Json:
    return json.loads(running.kubectl("get", "vcjob", name, "-o", "json").ok())


def to_the_end(running: RunningVcbatch, job: str, phase: str = "Completed") -> Json:
    """The job once it has ended, which must be in this phase."""
    ended: Json = {}

    def check() -> bool:
        ended.update(job_of(running, job))
        return ended.get("status", {}).get("state", {}).get("phase") in _ENDED

    until(check, lambda: f"{job} doesn't end:\n{described(running)}")
    assert ended["status"]["state"]["phase"] == phase, described(running)
    return ended


def until(check: Callable[[], bool], complaint: Callable[[], str]) -> None:
    end = time.monotonic() + _PATIENCE
    while not check():
        assert time.monotonic() < end, complaint()
        time.sleep(0.2)


def described(running: RunningVcbatch) -> str:
    """What is there, for the person who reads why a test failed."""
    objects = running.kubectl("get", "vcjob,pods", "-o", "yaml").out
    names = running.kubectl("get", "pods", "-o", "name").out.split()
    logs = [f"--- {name}\n{running.kubectl('logs', name, '--tail=25').out}" for name in names]
    return objects[-6000:] + "\n".join(logs)
