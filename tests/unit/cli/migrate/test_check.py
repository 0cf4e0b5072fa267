"""What a takeover means for each class of objects."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import DATA
from tests.support.volcano_cluster import (
    NOW,
    Cluster,
    job,
    ours,
    pod_group,
    queue,
    volcano_cluster,
    workload,
)
from vcbatch.api import resources
from vcbatch.api.phases import JobPhase
from vcbatch.api.resources import DAEMONSETS, DEPLOYMENTS, JOBS, PODGROUPS, QUEUES, Resource
from vcbatch.cli.inventory import Finding, Inventory, Level
from vcbatch.cli.inventory.components import SUCCESSORS
from vcbatch.cli.inventory.model import CommandEntry, CronEntry, Maker, Owner, Program, Role
from vcbatch.cli.migrate.check import PHASES, consequences, owners

Json = dict[str, Any]


def reported(inventory: Inventory, check: str = "") -> list[Finding]:
    every = consequences(inventory, NOW)
    assert all(one.todo for one in every if one.level is not Level.OK)
    return [one for one in every if check in ("", one.check)]


def levels(inventory: Inventory, check: str = "") -> list[str]:
    return [one.level for one in reported(inventory, check) if one.level is not Level.OK]


async def test_a_default_volcano_can_be_taken_over() -> None:
    inventory = await volcano_cluster().read()
    assert "blocker" not in levels(inventory)
    owner = reported(inventory, "ownership")
    assert [one.level for one in owner] == [Level.WARNING]
    assert "helm uninstall volcano" in owner[0].message
    assert [one.message.partition(";")[0] for one in reported(inventory, "programs")] == ["stopped by the plan"] * 3


def test_every_phase_is_explained() -> None:
    assert PHASES.keys() == {"", *JobPhase}


@pytest.mark.parametrize("phase", ["", *JobPhase])
async def test_jobs_of_each_phase_go_on(phase: str) -> None:
    api = volcano_cluster()
    api.seed(JOBS, job("a", phase))
    about = reported(await api.read(), "jobs")
    assert [(one.level, one.message) for one in about] == [(Level.OK, PHASES[phase])]
    assert "team/a" in about[0].subject


async def test_an_unknown_phase_is_a_warning() -> None:
    api = volcano_cluster()
    api.seed(JOBS, job("a", "Dreaming"))
    assert levels(await api.read(), "jobs") == ["warning"]


async def test_podgroups_named_as_before_1_10_block() -> None:
    api = volcano_cluster()
    one = job("old", "Running")
    api.seed(JOBS, one)
    api.seed(PODGROUPS, pod_group(one, "Running", name="old"))
    assert levels(await api.read(), "podgroups") == ["blocker"]
    api.objects.clear()
    api.seed(JOBS, one)
    api.seed(PODGROUPS, pod_group(one, "Running"))
    assert levels(await api.read(), "podgroups") == []


async def test_queues() -> None:
    api = volcano_cluster()
    api.seed(QUEUES, queue("odd", "Unknown"))
    api.seed(QUEUES, queue("shut", "Closing"))
    about = reported(await api.read(), "queues")
    assert [(one.level, one.subject) for one in about] == [(Level.WARNING, "odd"), (Level.OK, "3 queues")]


def test_commands_that_nobody_carried_out() -> None:
    old = CommandEntry(namespace="n", name="c", action="AbortJob", target="Job/x", created=NOW - timedelta(hours=1))
    fresh = replace(old, name="d", created=NOW)
    about = reported(Inventory(version="v1.36.1", commands=(old, fresh)), "commands")
    assert [one.level for one in about] == [Level.WARNING, Level.OK]
    assert "n/c (AbortJob Job/x)" in about[0].subject


def test_cronjobs_without_a_zone() -> None:
    zoned = CronEntry(namespace="n", name="a", time_zone="Europe/Berlin", active=2)
    bare = CronEntry(namespace="n", name="b")
    about = reported(Inventory(version="v1.36.1", cronjobs=(zoned, bare)), "cronjobs")
    assert [(one.level, one.subject) for one in about] == [(Level.WARNING, "n/b"), (Level.OK, "2 CronJobs")]
    assert "2 active jobs" in about[1].message


@pytest.mark.parametrize("role", [role for role in Role if not SUCCESSORS[role].replaced])
async def test_components_without_a_successor_are_named(role: Role) -> None:
    api = volcano_cluster()
    image = {"vc-dashboard": "vc-dashboard-backend", "numatopo (resource exporter)": "numatopo"}
    component = SUCCESSORS[role].component
    api.seed(DAEMONSETS, workload("x", image.get(component, component), "x"))
    about = [one for one in reported(await api.read(), "programs") if one.level is Level.WARNING]
    assert len(about) == 1
    assert component in about[0].message


def test_every_role_has_a_line() -> None:
    assert SUCCESSORS.keys() == set(Role)


def test_the_page_has_the_same_table() -> None:
    page = (Path(__file__).parents[4] / "docs/migrate-from-volcano.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| ")
    ]
    reported = {row[0]: row[1:] for row in rows if len(row) == 3 and row[2].startswith(("yes", "no", "for another"))}
    assert {name: row[0] for name, row in reported.items()} == {one.component: one.by for one in SUCCESSORS.values()}
    assert {name for name, row in reported.items() if row[1] == "yes"} == {
        one.component for one in SUCCESSORS.values() if one.keep
    }


async def test_two_sets_of_controllers_block() -> None:
    api = volcano_cluster()
    api.seed(DEPLOYMENTS, ours("c", "controllers"))
    api.seed(DEPLOYMENTS, ours("s", "scheduler", "--scheduler-name=mine"))
    assert levels(await api.read(), "programs") == ["blocker"]


async def test_a_policy_that_we_refuse_blocks() -> None:
    api = volcano_cluster()
    stored = api.objects[(resources.CONFIGMAPS, "volcano-system", "volcano-scheduler-configmap")]
    stored["data"]["volcano-scheduler.conf"] = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: nonesuch\n'
    about = reported(await api.read(), "policy")
    assert [one.level for one in about] == [Level.BLOCKER]
    assert "line 4" in about[0].message
    assert "nonesuch" in about[0].message


def test_gitops_tools_have_to_be_paused() -> None:
    owner = Owner(tool="Argo CD", name="batch")
    one = Program(kind="Deployment", namespace="n", name="s", maker=Maker.VOLCANO, role=Role.SCHEDULER, owner=owner)
    assert levels(Inventory(version="v1.36.1", programs=(one,)), "ownership") == ["warning"]


def test_what_is_no_name_of_a_release_names_none() -> None:
    one = Program(kind="Deployment", namespace="n", name="s", maker=Maker.VOLCANO, role=Role.SCHEDULER)
    for name, namespace in (("$(touch x)", "n"), ("ok", "n; true"), ("a b", "")):
        owner = Owner(tool="Helm", name=name, namespace=namespace)
        assert owners(Inventory(programs=(replace(one, owner=owner),))) == []


# -- recordings -------------------------------------------------------------------------------------------------------

_KINDS: dict[str, Resource] = {
    f"{one.plural}.{one.group}" if one.group else one.plural: one
    for one in vars(resources).values()
    if isinstance(one, Resource) and one != resources.EVENTS  # recorded as sentences
}


def _snapshots(name: str) -> list[dict[str, list[Json]]]:
    assert DATA is not None
    recording = json.loads((DATA / "recordings" / f"{name}.json").read_text())
    return [result["objects"] for result in recording["results"] if "snapshot" in result]


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in (DATA / "recordings").glob("*.json")) if DATA is not None else []
)
async def test_what_a_recorded_volcano_leaves_can_be_taken_over(name: str) -> None:
    for snapshot in _snapshots(name):
        api = Cluster()
        for kind, items in snapshot.items():
            for body in items if kind in _KINDS else ():
                api.seed(_KINDS[kind], body)
        inventory = await api.read()
        assert "blocker" not in levels(inventory)
        assert inventory.jobs.total == len(snapshot.get("jobs.batch.volcano.sh", ()))
        assert inventory.jobs.counts.keys() <= PHASES.keys()
        assert inventory.pod_groups.total == len(snapshot.get("podgroups.scheduling.volcano.sh", ()))
        assert inventory.ledgers == 0
