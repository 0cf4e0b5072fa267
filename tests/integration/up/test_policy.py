"""Files of the configuration in local mode: refused at the start, told of while it runs; and cycles recorded."""

from __future__ import annotations

import gzip
import json
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.integration.clients.waiting import until
from tests.integration.up.manifests import job
from tests.support.ports import free_port
from tests.support.up import RunningVcbatch, vcbatch

pytestmark = pytest.mark.kubectl

GOOD = "actions: enqueue, allocate, backfill\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n"
BAD = GOOD.replace("gang", "gagn")
ERROR = "policy.tiers[0].plugins[0].name: unknown plugin 'gagn' (did you mean 'gang'?); supported: binpack, capacity,"
VIRTUAL = ("--virtual-nodes", "1", "--kubelet-mode", "none")


@pytest.mark.parametrize("detach", [False, True])
def test_a_bad_policy_is_refused_before_anything_starts(tmp_path: Path, detach: bool) -> None:
    policy, state = tmp_path / "policy.yaml", tmp_path / "state"
    policy.write_text(BAD)
    flags = ["--detach"] if detach else []
    done = vcbatch("up", "--state-dir", str(state), "--port", "0", "--scheduler-conf", str(policy), *flags, check=False)
    assert done.returncode == 1
    assert f"error: {policy}:4:11: {ERROR}" in done.stderr
    assert not (state / "kubeconfig").exists()


def test_a_policy_that_turns_bad_is_told_and_the_last_good_one_goes_on(tmp_path: Path, program: RunningVcbatch) -> None:
    policy, recordings = tmp_path / "policy.yaml", tmp_path / "cycles"
    policy.write_text(GOOD)
    program.arguments = ("--scheduler-conf", str(policy), "--record-cycles", str(recordings), *VIRTUAL)
    program.up()
    policy.write_text(BAD)
    message = _reported(program, "PolicyRefused", by="vcbatch-scheduler")
    assert message.startswith("keeping the last valid configuration")
    assert f"line 4, column 11: {ERROR}" in message
    program.kubectl("apply", "-f", "-", stdin=job("j", "sleep 1", replicas=2)).ok()
    program.kubectl("wait", "vcjob/j", "--for=jsonpath={.status.state.phase}=Completed", "--timeout=60s").ok()
    policy.write_text(GOOD)
    assert _reported(program, "PolicyApplied", by="vcbatch-scheduler") == "the scheduler configuration is in use"
    program.down()

    files = sorted(recordings.glob("cycles-*.jsonl.gz"))
    assert files
    # Fails where a cycle has other decisions.
    replayed = "".join(vcbatch("replay", str(file)).stdout for file in files)
    assert " bound" in replayed


def test_commands_go_by_the_policy_that_is_in_force(tmp_path: Path, program: RunningVcbatch) -> None:
    policy, file = tmp_path / "policy.yaml", tmp_path / "snapshot.jsonl.gz"
    policy.write_text(GOOD)
    program.arguments = ("--scheduler-conf", str(policy), *VIRTUAL)
    program.up()

    def saved() -> dict[str, Any]:
        done = vcbatch("snapshot", str(file), "--kubeconfig", str(program.kubeconfig))
        assert done.stderr == "", "its policy is known"
        return json.loads(gzip.decompress(file.read_bytes()).splitlines()[0])

    first = saved()
    assert first["schedulerNames"] == ["volcano", "default-scheduler"]
    assert "proportion" not in first["policy"]
    policy.write_text(f"{GOOD}  - name: proportion\n")
    until(lambda: "proportion" in saved()["policy"])

    program.kubectl("apply", "-f", "-", stdin=job("large", "sleep 1", cpu="1000")).ok()
    explain = ("job", "explain", "large", "-o", "json", "--kubeconfig", str(program.kubeconfig))
    order = until(lambda: json.loads(vcbatch(*explain).stdout).get("order"))
    assert order["policy"] == f"{policy} (vcbatch up)"
    assert [(queue["name"], queue["waiting"], queue["share"]) for queue in order["queues"]] == [("default", 1, 0.0)]


TOPOLOGY = """
networkTopologyDiscovery:
- source: label
  enabled: true
  config:
    networkTopologyTypes:
      rack:
      - {nodeLabel: example.com/rack}
      - {nodeLabel: kubernetes.io/hostname}
"""


def test_hyper_nodes_are_made_as_the_controllers_file_says(tmp_path: Path, program: RunningVcbatch) -> None:
    conf = tmp_path / "volcano-controller.conf"
    conf.write_text("networkTopologyDiscovery: 3\n")
    start = ("up", "--detach", "--state-dir", str(program.state), "--port", "0", "--controller-conf", str(conf))
    refused = vcbatch(*start, check=False)
    assert refused.returncode == 1
    assert f"{conf}: networkTopologyDiscovery: want a list" in refused.stderr
    assert not program.kubeconfig.exists()

    conf.write_text(TOPOLOGY)
    program.arguments = ("--controller-conf", str(conf), *VIRTUAL)
    program.up()
    program.kubectl("label", "node", "virtual-0000", "example.com/rack=r1").ok()
    # `kubectl wait` waits for the first of what it finds by a label, and gives up where there is none yet.
    path = "jsonpath={.items[*].spec.members[*].selector.exactMatch.name}"
    named = ("get", "hypernodes", "-l", "volcano.sh/network-topology-source=label", "-o", path)
    assert until(lambda: program.kubectl(*named).ok() or None) == "virtual-0000"
    conf.write_text("networkTopologyDiscovery: 3\n")
    reported = _reported(program, "ConfigurationRefused", by="vcbatch-controllers")
    assert reported == f"keeping the last valid configuration: {conf}: networkTopologyDiscovery: want a list"


def _reported(program: RunningVcbatch, reason: str, *, by: str) -> str:
    """The message of the event about that Lease, once there is one."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        query = ("get", "events", "-n", "kube-system", "-o", "json", f"--field-selector=reason={reason}")
        items = json.loads(program.kubectl(*query).ok())["items"]
        if items:
            about = items[0]["involvedObject"]
            assert (about["kind"], about["name"]) == ("Lease", by)
            return items[0]["message"]
        time.sleep(0.5)
    raise AssertionError(f"no event {reason} in a minute")


def test_metrics_are_served_where_that_is_asked_for(program: RunningVcbatch) -> None:
    address = f"127.0.0.1:{free_port()}"
    program.arguments = ("--listen-address", address, *VIRTUAL)
    program.up()
    program.kubectl("apply", "-f", "-", stdin=job("j", "sleep 1", replicas=2)).ok()
    program.kubectl("wait", "vcjob/j", "--for=jsonpath={.status.state.phase}=Completed", "--timeout=60s").ok()
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    for line in (
        'volcano_queue_weight{queue_name="default"} 1.0',
        'volcano_task_scheduling_latency_milliseconds_count{stage="Bound"} 2.0',
        'volcano_schedule_attempts_total{result="scheduled"} 2.0',
        'vcbatch_binds_total{result="bound"} 2.0',
        'volcano_action_scheduling_latency_milliseconds_count{action="allocate"}',
        "volcano_e2e_job_scheduling_latency_milliseconds_count 1.0",
        "volcano_controller_job_to_pod_creation_latency_milliseconds_count 2.0",
        "vcbatch_reconcile_total{controller=",
        "vcbatch_leader 1.0",
    ):
        assert line in text, text
    taken = vcbatch("up", "--state-dir", str(program.state) + "-2", "--listen-address", address, *VIRTUAL, check=False)
    assert taken.returncode == 1
    assert f"can't listen on {address}: " in taken.stderr
