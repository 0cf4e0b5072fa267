"""Claims on one machine: a directory each, kept over restarts of everything, and gone with the claim."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.integration.up.manifests import job
from tests.support.up import RunningVcbatch

pytestmark = pytest.mark.kubectl

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def _finished(program: RunningVcbatch, name: str) -> None:
    program.kubectl("wait", f"vcjob/{name}", "--for=jsonpath={.status.state.phase}=Completed", "--timeout=60s").ok()


def _directories(program: RunningVcbatch) -> list[Path]:
    return sorted((program.state / "kubelet" / "volumes").glob("pvc-*"))


def test_a_claim_is_a_directory_that_outlives_pods_and_restarts_and_goes_with_its_job(program: RunningVcbatch) -> None:
    program.up()
    volumes = [{"mountPath": "/ckpt", "volumeClaim": CLAIM}]
    script = "cat /ckpt/step 2>/dev/null; echo x >>/ckpt/step; test $(wc -l </ckpt/step) -ge 2"
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    program.kubectl("apply", "-f", "-", stdin=job("own", script, volumes=volumes, policies=policies)).ok()
    _finished(program, "own")
    assert program.kubectl("logs", "own-w-0").ok() == "x\n", "the second attempt reads what the first wrote"
    (claim,) = json.loads(program.kubectl("get", "pvc", "-o", "json").ok())["items"]
    assert (claim["status"]["phase"], claim["spec"]["storageClassName"]) == ("Bound", "local")
    (folder,) = _directories(program)
    assert (folder / "step").read_text() == "x\nx\n"

    program.down()
    program.up()
    assert (folder / "step").read_text() == "x\nx\n"
    name = claim["metadata"]["name"]
    reader = job("reader", "cat /in/step", volumes=[{"mountPath": "/in", "volumeClaimName": name}])
    program.kubectl("apply", "-f", "-", stdin=reader).ok()
    _finished(program, "reader")
    assert program.kubectl("logs", "reader-w-0").ok() == "x\nx\n"

    program.kubectl("delete", "vcjob", "own", "reader").ok()
    deadline = time.monotonic() + 60
    while _directories(program) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _directories(program) == []
    assert not json.loads(program.kubectl("get", "pv,pvc", "-o", "json").ok())["items"]
