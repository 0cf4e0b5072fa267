"""The commands of a migration: real names, the right order, and nothing that a shell takes for something else."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.volcano_cluster import Cluster, job, lease, ours, queue, volcano_cluster, workload
from vcbatch.api.resources import DAEMONSETS, DEPLOYMENTS, JOBS, LEASES, QUEUES
from vcbatch.cli.base.terminal import PLAIN
from vcbatch.cli.inventory.model import Inventory, Maker, Owner, Program, Role
from vcbatch.cli.migrate.command import steps_text
from vcbatch.cli.migrate.plan import PlanRequest, Step, back, beside, forward

WITH_VCBATCH, WITH_HELM = PlanRequest(), PlanRequest(helm=True)


def commands(steps: Sequence[Step]) -> list[str]:
    return [command for step in steps for command in step.commands]


def at(steps: Sequence[Step], words: str) -> int:
    """The place of the only command with these words."""
    found = [number for number, command in enumerate(commands(steps)) if words in command]
    assert len(found) == 1, f"{words!r}: {found}"
    return found[0]


def checked_by_a_shell(steps: Sequence[Step]) -> str:
    text = steps_text(steps, PLAIN)
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return text


def run(script: str, folder: Path) -> None:
    done = subprocess.run(["bash"], input=script, text=True, capture_output=True, check=False, cwd=folder, timeout=30)
    assert done.returncode == 0, done.stderr


async def volcano() -> Inventory:
    return await volcano_cluster().read()


async def test_webhooks_go_first_and_ours_come_last() -> None:
    steps = forward(await volcano(), WITH_VCBATCH)
    order = [
        at(steps, "kubectl get crd "),
        at(steps, "kubectl delete mutatingwebhookconfiguration volcano-admission-service-jobs-mutate "),
        at(steps, "kubectl scale -n volcano-system deployment volcano-admission --replicas=0"),
        at(steps, "kubectl scale -n volcano-system deployment volcano-scheduler --replicas=0"),
        at(steps, "kubectl scale -n volcano-system deployment volcano-controllers --replicas=0"),
        at(steps, "kubectl delete secret -n volcano-system -l owner=helm,name=volcano"),
        at(steps, "kubectl annotate crd "),
        at(steps, "vcbatch install --namespace volcano-system"),
        at(steps, "vcbatch doctor"),
        at(steps, "kubectl delete clusterrole "),
    ]
    assert order == sorted(order)
    text = checked_by_a_shell(steps)
    assert "helm uninstall volcano\n" not in text
    assert "--leader-elect=false" in text  # how to see that they have stopped


async def test_each_program_is_waited_for_before_the_next_is_stopped() -> None:
    every = commands(forward(await volcano(), WITH_VCBATCH))
    for number, command in enumerate(every):
        if command.startswith("kubectl scale"):
            assert every[number + 1].startswith("kubectl wait")
            assert "--for=delete" in every[number + 1]


async def test_the_record_of_the_release_is_saved_before_it_is_deleted() -> None:
    steps = forward(await volcano(), WITH_VCBATCH)
    assert at(steps, "> volcano-release.yaml") < at(steps, "kubectl delete secret")
    assert commands(steps)[0] == "umask 077"


async def test_helm_gets_the_definitions_with_the_keep_policy() -> None:
    steps = forward(await volcano(), WITH_HELM)
    claimed = commands(steps)[at(steps, "kubectl annotate crd ")]
    assert "jobs.batch.volcano.sh" in claimed
    assert "helm.sh/resource-policy=keep meta.helm.sh/release-name=vcbatch" in claimed
    installed = at(steps, "helm install vcbatch helm/vcbatch -n volcano-system")
    assert at(steps, "kubectl annotate crd ") < installed
    assert "--set-file 'schedulers[0].policy'=volcano-scheduler-configmap.conf" in commands(steps)[installed]
    assert at(steps, "annotate secret -n volcano-system volcano-admission-secret") < installed
    checked_by_a_shell(steps)


async def test_the_policy_is_saved_checked_and_handed_on() -> None:
    steps = forward(await volcano(), WITH_VCBATCH)
    saved = commands(steps)[at(steps, "kubectl get configmap")]
    assert "{.data.volcano-scheduler\\.conf}" in saved
    assert at(steps, "vcbatch config check volcano-scheduler-configmap.conf") < at(steps, "vcbatch install")
    assert "--scheduler-conf volcano-scheduler-configmap.conf" in commands(steps)[at(steps, "vcbatch install")]


async def test_other_scheduler_names_go_on() -> None:
    api = volcano_cluster()
    api.seed(DEPLOYMENTS, workload("second", "vc-scheduler", "volcano-scheduler", "--scheduler-name=gpu"))
    steps = forward(await api.read(), WITH_VCBATCH)
    assert "--scheduler-name gpu --scheduler-name volcano" in commands(steps)[at(steps, "vcbatch install")]
    assert "spec.schedulerName=gpu" in commands(steps)[at(steps, "> pods-before.txt")]


async def test_components_that_stay_are_not_stopped() -> None:
    api = volcano_cluster()
    api.seed(DAEMONSETS, workload("agent", "vc-agent", "volcano-agent"))
    api.seed(DEPLOYMENTS, workload("agent-scheduler", "vc-agent-scheduler", "agent-scheduler"))
    text = checked_by_a_shell(forward(await api.read(), WITH_VCBATCH))
    assert "daemonset" not in text
    assert "agent-scheduler" not in text


async def test_a_volcano_without_helm_has_no_release() -> None:
    api = volcano_cluster()
    for (kind, _, _), body in api.objects.items():
        body["metadata"].pop("annotations", None)
        body["metadata"].pop("labels", None) if kind != LEASES else None
    text = checked_by_a_shell(forward(await api.read(), WITH_VCBATCH))
    assert "owner=helm" not in text


@pytest.mark.parametrize("phase", ["Restarting", "Aborting", "Completing", "Terminating"])
async def test_jobs_in_flight_may_be_waited_for(phase: str) -> None:
    api = volcano_cluster()
    assert "in transition" not in checked_by_a_shell(forward(await api.read(), WITH_VCBATCH))
    api.seed(JOBS, job("a", phase))
    assert "in transition" in checked_by_a_shell(forward(await api.read(), WITH_VCBATCH))


async def test_names_of_a_cluster_run_nothing_in_a_shell(tmp_path_factory: pytest.TempPathFactory) -> None:
    api = volcano_cluster()
    evil = "x; touch pwned $(touch pwned) `touch pwned` ' \" \x1b[2J"
    api.seed(DEPLOYMENTS, workload("s", "vc-scheduler", "app", f"--scheduler-name={evil}"))
    body = api.objects[(DEPLOYMENTS, "volcano-system", "s")]
    body["metadata"]["annotations"] = {"meta.helm.sh/release-name": evil, "meta.helm.sh/release-namespace": evil}
    inventory = await api.read()
    folder = tmp_path_factory.mktemp("shell")
    for steps in (forward(inventory, WITH_VCBATCH), forward(inventory, WITH_HELM), back(inventory, WITH_VCBATCH),
                  beside(inventory, WITH_VCBATCH, "mine")):  # fmt: skip
        script = "kubectl() { :; }; vcbatch() { :; }; helm() { :; }; vcctl() { :; }; flux() { :; }\n"
        text = checked_by_a_shell(steps)
        assert "\x1b" not in text
        run(script + text, folder)
        assert not (folder / "pwned").exists()


# -- back -------------------------------------------------------------------------------------------------------------


async def taken_over(manager: str, operation: str) -> Inventory:
    """vcbatch works, Volcano's Deployments are scaled to 0, its configurations are gone."""
    api: Cluster = volcano_cluster()
    for key in [key for key in api.objects if key[0].group == "admissionregistration.k8s.io"]:
        del api.objects[key]
    for key, body in api.objects.items():
        if key[0] == DEPLOYMENTS:
            body["spec"]["replicas"], body["status"] = 0, {}
    for part in ("scheduler", "controllers", "webhooks"):
        api.seed(DEPLOYMENTS, ours(f"vcbatch-{part}", part))
    api.seed(LEASES, lease("vcbatch-scheduler", "pod", "2026-11-01T11:59:59.000000Z"))
    api.seed(QUEUES, queue("research", "Open", manager=manager, operation=operation))
    return await api.read()


async def test_the_way_back_stops_ours_before_volcano_starts() -> None:
    steps = back(await taken_over("queue-controller", "Apply"), WITH_VCBATCH)
    order = [
        at(steps, "kubectl scale -n volcano-system deployment vcbatch-webhooks --replicas=0"),
        at(steps, "kubectl scale -n volcano-system deployment vcbatch-scheduler --replicas=0"),
        at(steps, "kubectl scale -n volcano-system deployment vcbatch-controllers --replicas=0"),
        at(steps, "vcbatch uninstall"),
        at(steps, "kubectl create -f volcano-release.yaml"),
        at(steps, "deployment volcano-controllers --replicas=1"),
        at(steps, "deployment volcano-scheduler --replicas=1"),
        at(steps, "deployment volcano-admission --replicas=1"),
        at(steps, "kubectl create -f volcano-webhooks.yaml"),
    ]
    assert order == sorted(order)
    checked_by_a_shell(steps)
    assert at(back(await taken_over("queue-controller", "Apply"), WITH_HELM), "helm uninstall vcbatch")


@pytest.mark.parametrize(
    ("manager", "operation", "freed"),
    [("queue-controller", "Apply", False), ("queue-controller", "Update", True), ("vcbatch", "Update", True)],
)
async def test_queues_whose_state_another_manager_owns_are_freed(manager: str, operation: str, freed: bool) -> None:
    text = checked_by_a_shell(back(await taken_over(manager, operation), WITH_VCBATCH))
    assert ("kubectl patch queue.scheduling.volcano.sh research" in text) is freed
    assert "kubectl patch queue.scheduling.volcano.sh default" not in text


async def test_a_volcano_that_was_removed_is_installed_again() -> None:
    inventory = await taken_over("queue-controller", "Apply")
    left = [one for one in inventory.programs if one.maker is Maker.VCBATCH]
    steps = back(replace(inventory, programs=tuple(left)), WITH_VCBATCH)
    assert at(steps, "helm upgrade volcano")


# -- side by side -----------------------------------------------------------------------------------------------------


async def test_beside_volcano_nothing_of_it_is_stopped() -> None:
    steps = beside(await volcano(), WITH_VCBATCH, "mine")
    text = checked_by_a_shell(steps)
    assert "--replicas=0" not in text
    assert "components=scheduler" in text
    installed = shlex.split(commands(steps)[at(steps, "vcbatch install")])
    assert installed[installed.index("--scheduler-name") + 1] == "mine"
    assert installed[installed.index("--node-selector") + 1] == "vcbatch.dev/scheduler:mine"


def test_a_release_of_ours_is_not_forgotten() -> None:
    owner = Owner(tool="Helm", name="vcbatch-a", namespace="n")
    one = Program(kind="Deployment", namespace="n", name="s", maker=Maker.VOLCANO, role=Role.SCHEDULER, owner=owner)
    assert "forget" not in checked_by_a_shell(forward(Inventory(programs=(one,)), WITH_VCBATCH))
