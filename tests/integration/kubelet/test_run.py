"""What becomes of a pod's containers: output, exit codes, restarts, deadlines and ends. Real processes."""

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.kubelet.world import LONG, World, no_process, processes_with, shell, terminated, world
from vcbatch.api.resources import PODS

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="containers are Linux processes")


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path, settings={"memory_check_seconds": 0.1}) as made:
        yield made


async def test_a_container_prints_and_ends_with_its_exit_code(node: World) -> None:
    await node.pod("a", "echo out; echo err >&2; printf 'no newline'; exit 3")
    pod = await node.over("a")
    assert pod["status"]["phase"] == "Failed"
    end = terminated(pod)
    assert (end["exitCode"], end["reason"]) == (3, "Error")
    assert await node.logs("a") == "out\nerr\nno newline\n"
    conditions = {c["type"]: c["status"] for c in pod["status"]["conditions"]}
    assert conditions == {
        "PodReadyToStartContainers": "False",
        "Initialized": "True",
        "Ready": "False",
        "ContainersReady": "False",
        "PodScheduled": "True",
    }


async def test_a_pod_that_runs_costs_two_status_writes(node: World) -> None:
    await node.pod("a", "until [ -e go ]; do sleep 0.02; done")
    await node.phase("a", "Running")
    (node.root / "go").touch()
    pod = await node.over("a")
    assert pod["status"]["phase"] == "Succeeded"
    assert len(node.server.history(PODS, "a")) == 1 + 2


@pytest.mark.parametrize(
    ("command", "code", "reason", "message"),
    [
        (["no-such-program"], 127, "StartError", 'exec: "no-such-program": executable file not found in $PATH'),
        (["/no/such/file"], 127, "StartError", 'exec: "/no/such/file": no such file or directory'),
        (["/etc/passwd"], 126, "StartError", 'exec: "/etc/passwd": permission denied'),
        (["sh", "-c", "kill -SEGV $$$$"], 139, "Error", "ended by SIGSEGV"),
        (["sh", "-c", "kill -9 $$$$"], 137, "Error", "ended by SIGKILL"),
    ],
)
async def test_how_it_ended_has_a_code_and_words(
    node: World, command: list[str], code: int, reason: str, message: str
) -> None:
    await node.pod("a", {"name": "main", "image": "x", "command": command})
    end = terminated(await node.over("a"))
    assert (end["exitCode"], end["reason"], end["message"]) == (code, reason, message)


async def test_a_working_directory_that_is_not_there_is_named(node: World) -> None:
    await node.pod("a", shell("true", workingDir="/not/there"))
    end = terminated(await node.over("a"))
    assert (end["exitCode"], end["reason"]) == (128, "StartError")
    assert end["message"] == 'working directory "/not/there": No such file or directory'


async def test_a_container_without_a_command_waits_and_says_what_to_do(node: World) -> None:
    await node.pod("a", {"name": "main", "image": "pytorch/pytorch"})
    pod = await node.until("a", lambda o: o["status"].get("containerStatuses") is not None)
    waiting = pod["status"]["containerStatuses"][0]["state"]["waiting"]
    assert waiting["reason"] == "CreateContainerConfigError"
    assert waiting["message"].startswith("no command specified: image entrypoints are not available in local mode")
    assert pod["status"]["phase"] == "Pending"
    await node.pod("b", "true")
    assert (await node.over("b"))["status"]["phase"] == "Succeeded"


async def test_init_containers_run_in_order_before_the_others(node: World) -> None:
    inits = [shell("echo 1 >> order", name="one"), shell("echo 2 >> order", name="two")]
    assert await node.output("a", "cat order", initContainers=inits) == "1\n2\n"


async def test_a_failed_init_container_fails_a_pod_that_never_restarts(node: World) -> None:
    await node.pod("a", "touch ran", initContainers=[shell("exit 5", name="setup")])
    pod = await node.over("a")
    assert pod["status"]["phase"] == "Failed"
    assert terminated(pod, "setup")["exitCode"] == 5
    assert not (node.root / "ran").exists()


async def test_a_sidecar_runs_beside_the_others_and_is_ended_after_them(node: World) -> None:
    sidecar = shell(f"touch up; exec sleep {LONG}0125", name="side", restartPolicy="Always")
    await node.pod("a", "until [ -e up ]; do sleep 0.02; done", initContainers=[sidecar])
    assert (await node.over("a"))["status"]["phase"] == "Succeeded"
    assert processes_with(f"sleep {LONG}0125") == []


async def test_on_failure_restarts_until_success_and_keeps_the_previous_log(node: World) -> None:
    script = "if [ -e tried ]; then echo second; else touch tried; echo first; exit 1; fi"
    await node.pod("a", script, restartPolicy="OnFailure")
    pod = await node.over("a")
    status = pod["status"]["containerStatuses"][0]
    assert (pod["status"]["phase"], status["restartCount"]) == ("Succeeded", 1)
    assert status["lastState"]["terminated"]["exitCode"] == 1
    assert await node.logs("a") == "second\n"
    assert await node.logs("a", previous=True) == "first\n"


async def test_a_container_that_keeps_failing_backs_off(node: World) -> None:
    await node.pod("a", "exit 1", restartPolicy="Always")

    def backs_off(pod: dict) -> bool:
        states = pod["status"].get("containerStatuses") or [{"state": {}}]
        return states[0]["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff"

    pod = await node.until("a", backs_off)
    status = pod["status"]["containerStatuses"][0]
    assert status["restartCount"] == 1
    assert status["state"]["waiting"]["message"].startswith(
        "back-off 10s restarting failed container=main pod=a_default"
    )
    assert pod["status"]["phase"] == "Running"
    await node.event("a", "BackOff")


async def test_nothing_of_the_tree_outlives_the_container(node: World) -> None:
    await node.pod("a", f"(setsid sleep {LONG}025 &) ; (setsid sh -c 'trap \"\" TERM HUP; sleep {LONG}026' &) ; exit 0")
    await node.over("a")
    assert processes_with(f"sleep {LONG}02") == []


async def test_deleting_tells_the_program_and_waits_for_it(node: World) -> None:
    await node.pod(
        "a", "trap 'echo saving; sleep 0.2; touch saved; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    )
    await node.log_has("a", "up")
    await node.api.delete(PODS, "a", namespace="default")
    await node.gone("a")
    assert (node.root / "saved").exists()


async def test_the_program_behind_a_shell_may_finish_its_work(node: World) -> None:
    script = "import signal,sys,time\ndef end(*_):\n time.sleep(0.3); open('saved','w'); sys.exit(0)\n"
    script += "signal.signal(signal.SIGTERM,end); print('up',flush=True)\nwhile 1: time.sleep(1)"
    await node.pod("a", f'{sys.executable} -c "{script}"; echo done')
    await node.log_has("a", "up")
    await node.api.delete(PODS, "a", namespace="default")
    await node.gone("a")
    assert (node.root / "saved").exists()


async def test_what_ignores_the_request_to_end_is_killed_after_the_grace_period(node: World) -> None:
    await node.pod("a", f"trap '' TERM; echo up; while :; do sleep {LONG}0375; done")
    await node.log_has("a", "up")
    await node.api.delete(PODS, "a", namespace="default", grace_seconds=1)
    await node.gone("a")
    assert processes_with(f"sleep {LONG}0375") == []


async def test_a_deleted_pod_is_seen_in_a_terminal_phase_first(node: World) -> None:
    await node.pod("a", f"echo up; exec sleep {LONG}05")
    await node.log_has("a", "up")
    await node.api.delete(PODS, "a", namespace="default")
    await node.gone("a")
    phases = [pod["status"]["phase"] for pod in node.server.history(PODS, "a")]
    assert phases[-2:] == ["Failed", "Failed"]


async def test_force_deleting_ends_the_processes(node: World) -> None:
    await node.pod("a", f"echo up; exec sleep {LONG}0625")
    await node.log_has("a", "up")
    await node.api.delete(PODS, "a", namespace="default", grace_seconds=0)
    await node.pod("a", "true")  # the same name again, at once
    assert (await node.over("a"))["status"]["phase"] == "Succeeded"
    await no_process(f"sleep {LONG}0625")


async def test_a_pod_past_its_deadline_fails_with_the_reason(node: World) -> None:
    await node.pod("a", f"exec sleep {LONG}075", activeDeadlineSeconds=1)
    pod = await node.over("a")
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "DeadlineExceeded")
    assert processes_with(f"sleep {LONG}075") == []


async def test_memory_above_the_limit_ends_in_oom_killed(node: World) -> None:
    program = f"exec {sys.executable} -c 'import time; held = bytearray(80_000_000); time.sleep(1000)'"
    await node.pod("a", shell(program, resources={"limits": {"memory": "40Mi"}}))
    end = terminated(await node.over("a"))
    assert (end["exitCode"], end["reason"]) == (137, "OOMKilled")


async def test_the_termination_message_comes_from_the_file_else_from_the_log(node: World) -> None:
    if node.sandbox.mode != "userns":
        pytest.skip("needs namespaces to give the container its own /dev/termination-log")
    await node.pod("file", "echo why > /dev/termination-log; exit 1")
    await node.pod("other", shell("echo there > /var/why/message; exit 1", terminationMessagePath="/var/why/message"))
    await node.pod("log", shell("echo last words; exit 1", terminationMessagePolicy="FallbackToLogsOnError"))
    assert terminated(await node.over("file"))["message"] == "why\n"
    assert terminated(await node.over("other"))["message"] == "there\n"
    assert terminated(await node.over("log"))["message"] == "last words\n"


async def test_environment_from_every_source(node: World) -> None:
    await node.config_map("settings", mode="fast", other="x")
    await node.secret("keys", token="c2VjcmV0")
    container = shell(
        "env",
        envFrom=[
            {"configMapRef": {"name": "settings"}, "prefix": "CM_"},
            {"secretRef": {"name": "none", "optional": True}},
        ],
        env=[
            {"name": "PLAIN", "value": "one"},
            {"name": "REFERS", "value": "$(PLAIN)-$(CM_mode)-$(UNKNOWN)-$$(PLAIN)"},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['role']"}}},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu"}}},
            {"name": "MEM", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
            {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "mode"}}},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}},
            {"name": "MAYBE", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "nope", "optional": True}}},
        ],
        resources={"requests": {"cpu": "1500m"}, "limits": {"memory": "512Mi"}},
    )
    printed = await node.output("a", container, metadata={"labels": {"role": "worker"}})
    env = dict(line.partition("=")[::2] for line in printed.splitlines())
    want = {
        "PLAIN": "one",
        "REFERS": "one-fast-$(UNKNOWN)-$(PLAIN)",
        "POD": "a",
        "LABEL": "worker",
        "CPUS": "2",
        "MEM": "512",
        "MODE": "fast",
        "TOKEN": "secret",
        "CM_mode": "fast",
        "CM_other": "x",
        "OMP_NUM_THREADS": "2",
        "HOSTNAME": "a",
    }
    assert {name: env.get(name) for name in want} == want
    assert env["IP"].startswith("127.")
    assert "MAYBE" not in env
    assert "KUBECONFIG" not in env


async def test_a_missing_config_map_is_waited_for(node: World) -> None:
    source = {"configMapKeyRef": {"name": "later", "key": "k"}}
    await node.pod("a", shell("echo got $K", env=[{"name": "K", "valueFrom": source}]))
    pod = await node.until("a", lambda o: o["status"].get("containerStatuses") is not None)
    waiting = pod["status"]["containerStatuses"][0]["state"]["waiting"]
    assert waiting == {"reason": "CreateContainerConfigError", "message": 'configmap "later" not found'}
    await node.config_map("later", k="it")
    await node.over("a")
    assert await node.logs("a") == "got it\n"


async def test_whole_processors_are_pinned(node: World) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two processors")
    program = f"exec {sys.executable} -c 'import os; print(len(os.sched_getaffinity(0)))'"
    assert await node.output("a", shell(program, resources={"requests": {"cpu": "1"}})) == "1\n"


async def test_a_broken_pod_never_stops_the_others(node: World) -> None:
    node.planted("odd", shell("true", env=[{"name": "X", "valueFrom": {"?": {}}}]))
    node.planted("odder", shell("true", resources={"limits": {"memory": "lots"}}))
    await node.pod("fine", "true")
    assert (await node.over("fine"))["status"]["phase"] == "Succeeded"


async def test_probes_make_ready_and_restart(node: World) -> None:
    ready = {"exec": {"command": ["test", "-e", "ready"]}, "periodSeconds": 1}
    await node.pod("a", shell(f"exec sleep {LONG}0875", readinessProbe=ready))
    pod = await node.phase("a", "Running")
    assert not pod["status"]["containerStatuses"][0]["ready"]
    (node.root / "ready").touch()
    await node.until("a", lambda o: o["status"]["containerStatuses"][0]["ready"])
    live = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
    await node.pod("b", shell(f"exec sleep {LONG}0875", livenessProbe=live), restartPolicy="Always")
    await node.until("b", lambda o: o["status"].get("containerStatuses", [{"restartCount": 0}])[0]["restartCount"] >= 1)
    await node.event("b", "Unhealthy")


async def test_a_hundred_pods_run(node: World) -> None:
    for index in range(100):
        await node.pod(f"p{index}", "true")
    for index in range(100):
        assert (await node.over(f"p{index}"))["status"]["phase"] == "Succeeded"


async def test_stopping_the_kubelet_ends_every_process_and_says_so(tmp_path: Path) -> None:
    async with world(tmp_path) as node:
        await node.pod("a", f"echo up; (setsid sleep {LONG}1125 &) ; exec sleep {LONG}1125")
        await node.log_has("a", "up")
    assert processes_with(f"sleep {LONG}1125") == []
    pod = await node.api.get(PODS, "a", namespace="default")
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "Terminated")
    assert terminated(pod)["exitCode"] == 143
    assert "DisruptionTarget" in {c["type"] for c in pod["status"]["conditions"]}


async def test_a_restart_rule_brings_a_container_back_in_a_pod_that_never_restarts(node: World) -> None:
    rules = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
    script = "[ -e seen ] && exit 3; touch seen; echo first; exit 42"
    await node.pod("a", shell(script, restartPolicy="Never", restartPolicyRules=rules))
    pod = await node.over("a")
    status = pod["status"]["containerStatuses"][0]
    assert (pod["status"]["phase"], status["restartCount"]) == ("Failed", 1)
    assert terminated(pod)["exitCode"] == 3
    assert status["lastState"]["terminated"]["exitCode"] == 42
    assert await node.logs("a", previous=True) == "first\n"


async def test_one_containers_end_restarts_all_of_them_in_the_same_pod(node: World) -> None:
    rules = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [9]}}]
    trainer = "echo run >> /cache/runs; [ $(wc -l < /cache/runs) -ge 2 ] && exit 0; "
    trainer += "until [ -e /cache/up ]; do sleep 0.05; done; exit 9"
    mount = {"volumeMounts": [{"name": "cache", "mountPath": "/cache"}]}
    made = await node.pod(
        "a",
        shell(trainer, restartPolicy="Never", restartPolicyRules=rules, **mount),
        shell(f"[ $(wc -l < /cache/init) -ge 2 ] && exit 0; touch /cache/up; exec sleep {LONG}", "helper", **mount),
        initContainers=[shell("echo run >> /cache/init", "set-up", image="any", **mount)],
        volumes=[{"name": "cache", "emptyDir": {}}],
    )
    pod = await node.over("a")
    assert pod["metadata"]["uid"] == made["metadata"]["uid"]
    assert pod["status"]["phase"] == "Succeeded"
    statuses = [*pod["status"]["initContainerStatuses"], *pod["status"]["containerStatuses"]]
    assert [(s["name"], s["restartCount"]) for s in statuses] == [("set-up", 1), ("main", 1), ("helper", 1)]
    ends = {s["name"]: s["lastState"]["terminated"]["exitCode"] for s in statuses}
    assert ends == {"set-up": 0, "main": 9, "helper": 137}
    condition = next(c for c in pod["status"]["conditions"] if c["type"] == "AllContainersRestarting")
    assert condition["status"] == "False"
    await no_process(f"sleep {LONG}")
