"""/readyz says whether a program can do its work: rights that are taken away make it unready within a minute, and it is
ready again once they are back, as the same process."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.cluster.components import CONTROLLERS, NAMESPACE, RBAC, SCHEDULER, WEBHOOKS, Component, Components
from tests.cluster.controlplane import APISERVER, ControlPlane
from tests.cluster.gangs import gang, submit, wait_phase
from tests.cluster.processes import wait_until
from tests.cluster.requests import counted
from vcbatch.api.resources import JOBFLOWS, JOBS, JOBTEMPLATES

PARTS = (CONTROLLERS, SCHEDULER, WEBHOOKS)
SECONDS = 60.0
"""Until a program says that it can't do its work, and until it says that it can again."""
ALONE = "--leader-elect=false"
"""A leader that can't renew its Lease ends, to be started again; without one there is nothing to lose."""
_ACCOUNTS = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> ControlPlane:
    control_plane.add_nodes(2)
    return control_plane


@pytest.fixture(scope="module")
def programs(plane: ControlPlane) -> Iterator[dict[str, Component]]:
    """One of each, which work."""
    with Components(plane) as components:
        webhooks = components.start(WEBHOOKS).wait_ready()
        components.install_admission(webhooks)
        alone = {part: components.start(part, ALONE) for part in (CONTROLLERS, SCHEDULER)}
        yield {WEBHOOKS: webhooks, **{part: one.wait_ready() for part, one in alone.items()}}


def said(component: Component, path: str = "readyz") -> tuple[int, str]:
    """Code and text of a path of the health server."""
    try:
        with urllib.request.urlopen(f"{component.health}/{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@contextmanager
def unready_and_back(*components: Component, check: str, why: str, repair: Callable[[], object]) -> Iterator[None]:
    """What is done to the cluster in the block makes these programs unready, for that reason; `repair`, which is done
    whatever happens, makes them ready again without a restart: nobody starts a program here that has ended."""
    try:
        for component in components:
            component.wait_ready()
        yield
        for component in components:
            name = component.program.name

            def failing(component: Component = component) -> bool:
                component.program.check()
                code, text = said(component, f"readyz/{check}")
                return code == 503 and why in text

            wait_until(f"the check {check} of {name} fails: {why}", failing, timeout=SECONDS)
            code, text = said(component)
            assert (code, f"[-]{check} failed: " in text) == (503, True), text
            assert f'vcbatch_ready_check{{check="{check}"}} 0.0' in component.metrics()
    finally:
        repair()
    for component in components:
        component.wait_ready(timeout=SECONDS)
        component.program.check()


def test_the_checks_of_each_program_are_listed_and_counted(programs: dict[str, Component]) -> None:
    common = ["event-loop", "permissions", "tasks", "caches", "watches"]
    own = {CONTROLLERS: ["reconciles"], SCHEDULER: ["policy", "cycle"], WEBHOOKS: ["certificate"]}
    for part, component in programs.items():
        code, text = said(component, "readyz?verbose")
        *checks, last = text.splitlines()
        assert (code, last) == (200, "readyz check passed")
        assert checks == [f"[+]{name} ok" for name in (*common, *own[part])]
        assert said(component, "readyz/permissions") == (200, "ok")
        metrics = component.metrics()
        for name in (*common, *own[part]):
            assert f'vcbatch_ready_check{{check="{name}"}} 1.0' in metrics


def test_a_question_about_own_rights_is_asked_every_few_seconds_and_no_more_often(
    plane: ControlPlane, programs: dict[str, Component]
) -> None:
    def reviews() -> int:
        kinds = counted(plane)
        return sum(number for kind, number in kinds.items() if kind.resource == "selfsubjectrulesreviews")

    before, began = reviews(), time.monotonic()
    rounds = 2
    wait_until("each program has asked again", lambda: reviews() - before > rounds * len(programs), timeout=120)
    # One of them has asked three times, with two pauses in between.
    assert time.monotonic() - began > 10 * rounds
    asked = [kind for kind in counted(plane) if kind.resource == "selfsubjectaccessreviews"]
    assert not asked, "where RBAC tells all rules, one question is enough"


def test_removed_bindings(plane: ControlPlane, programs: dict[str, Component]) -> None:
    def repair() -> None:
        plane.apply(*(RBAC / f"{part}.yaml" for part in PARTS))

    with unready_and_back(*programs.values(), check="permissions", why="may not ", repair=repair):
        for part in PARTS:
            plane.call("DELETE", f"{_BINDINGS}/vcbatch-{part}")
    run_a_job(plane, "after-bindings")


def test_deleted_accounts(plane: ControlPlane, programs: dict[str, Component]) -> None:
    def repair() -> None:
        for part in PARTS:
            if plane.request("GET", f"{_ACCOUNTS}/vcbatch-{part}")[0] == 404:
                plane.call("POST", _ACCOUNTS, {"metadata": {"name": f"vcbatch-{part}"}})
            plane.write_token(NAMESPACE, f"vcbatch-{part}", plane.folder / f"{NAMESPACE}-vcbatch-{part}.token")

    with unready_and_back(*programs.values(), check="permissions", why="credentials", repair=repair):
        for part in PARTS:
            plane.call("DELETE", f"{_ACCOUNTS}/vcbatch-{part}")
    run_a_job(plane, "after-accounts")


def test_an_api_server_that_is_killed(plane: ControlPlane, programs: dict[str, Component]) -> None:
    """The webhooks stay ready: an API server that is back asks them at once."""
    server = plane.programs[APISERVER]
    asked: list[tuple[int, str]] = []

    def repair() -> None:
        asked.append(said(programs[WEBHOOKS]))
        if not server.running:
            server.start()
        plane.wait_ready()
        asked.append(said(programs[WEBHOOKS]))

    others = [programs[part] for part in (CONTROLLERS, SCHEDULER)]
    with unready_and_back(*others, check="watches", why="not followed", repair=repair):
        server.kill()
    assert asked == [(200, "ok"), (200, "ok")]
    run_a_job(plane, "after-restart")


def test_replicas_that_elect_a_leader_are_unready_too_and_go_on(plane: ControlPlane) -> None:
    def repair() -> None:
        plane.apply(RBAC / "scheduler.yaml")

    with Components(plane) as others:
        flags = ("--scheduler-name", "other", "--leader-elect-resource-name", "vcbatch-scheduler")
        leader = others.start(SCHEDULER, *flags, replica="leads").wait_ready()
        wait_until("the first leads", leader.leading)
        standby = others.start(SCHEDULER, *flags, replica="stands-by").wait_ready()
        with unready_and_back(leader, standby, check="permissions", why="may not ", repair=repair):
            plane.call("DELETE", f"{_BINDINGS}/vcbatch-scheduler")
        assert leader.leading() and not standby.leading()
        assert said(standby, "readyz/lease") == (200, "ok")


def test_a_kind_that_is_deleted_and_defined_again_is_followed_again(
    plane: ControlPlane, programs: dict[str, Component]
) -> None:
    def repair() -> None:
        plane.install_crds()

    with unready_and_back(programs[CONTROLLERS], check="watches", why="jobflows", repair=repair):
        plane.delete_crds(f"{JOBFLOWS.plural}.{JOBFLOWS.group}")
    template = {"apiVersion": JOBTEMPLATES.api_version, "kind": JOBTEMPLATES.kind, "metadata": {"name": "step"}}
    plane.call(
        "POST", JOBTEMPLATES.path(namespace="default"), {**template, "spec": gang("-", 1, command="true")["spec"]}
    )
    flow = {"apiVersion": JOBFLOWS.api_version, "kind": JOBFLOWS.kind, "metadata": {"name": "flow"}}
    plane.call("POST", JOBFLOWS.path(namespace="default"), {**flow, "spec": {"flows": [{"name": "step"}]}})
    job = JOBS.path(namespace="default", name="flow-step")
    wait_until("the flow made a job", lambda: plane.request("GET", job)[0] == 200, timeout=60)
    wait_phase(plane, "flow-step", "Completed", timeout=60)


def run_a_job(plane: ControlPlane, name: str) -> None:
    submit(plane, gang(name, 2, command="exit 0"))
    wait_phase(plane, name, "Completed", timeout=60)
