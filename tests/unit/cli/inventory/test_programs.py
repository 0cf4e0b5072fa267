"""Which program a workload runs, and who keeps it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.volcano_cluster import ours, workload
from vcbatch.cli.inventory.model import Maker, Owner, Role
from vcbatch.cli.inventory.programs import flag, image_name, owner_of, program_of

Json = dict[str, Any]


def one(image: str = "", *, command: list[str] | None = None, args: list[str] | None = None, app: str = "") -> Json:
    container = {"image": image, "command": command or [], "args": args or []}
    template = {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container]}}
    return {"metadata": {"name": "x", "namespace": "ns"}, "spec": {"template": template}}


@pytest.mark.parametrize(
    ("workload", "maker", "role"),
    [
        (one("volcanosh/vc-scheduler:v1.15.0"), Maker.VOLCANO, Role.SCHEDULER),
        (one("reg:5000/mirror/vc-scheduler-arm64@sha256:12"), Maker.VOLCANO, Role.SCHEDULER),
        (one("volcanosh/vc-agent-scheduler:latest"), Maker.VOLCANO, Role.AGENT_SCHEDULER),
        (one("volcanosh/vc-agent:latest"), Maker.VOLCANO, Role.AGENT),
        (one("volcanosh/vc-hypernode-controller-manager:v1"), Maker.VOLCANO, Role.HYPERNODES),
        (one("projecthami/volcano-vgpu-device-plugin:v1.12.0"), Maker.VOLCANO, Role.VGPU),
        (one("volcanosh/numatopo:latest"), Maker.VOLCANO, Role.TOPOLOGY),
        (one("volcanosh/vc-dashboard-backend:v0.2"), Maker.VOLCANO, Role.DASHBOARD),
        (one("volcanosh/volcano-global-webhook-manager:v0.1"), Maker.VOLCANO, Role.GLOBAL),
        (one("corp/batch-sched:7", app="volcano-scheduler"), Maker.VOLCANO, Role.SCHEDULER),
        (one("corp/adm:7", args=["--webhook-service-name=x"]), Maker.VOLCANO, Role.ADMISSION),
        (one("corp/any:7", command=["/opt/vc-controller-manager"]), Maker.VOLCANO, Role.CONTROLLERS),
        (one("corp/vcbatch:1", args=["scheduler"]), Maker.VCBATCH, Role.SCHEDULER),
        (one("corp/any:1", command=["vcbatch"], args=["webhooks", "--port", "8443"]), Maker.VCBATCH, Role.ADMISSION),
        (one("corp/any:1", command=["python", "-m", "vcbatch", "controllers"]), Maker.VCBATCH, Role.CONTROLLERS),
    ],
)
def test_programs_are_known_by_image_command_and_label(workload: Json, maker: Maker, role: Role) -> None:
    found = program_of("Deployment", workload)
    assert found is not None
    assert (found.maker, found.role) == (maker, role)


@pytest.mark.parametrize(
    "workload", [one("nginx:1"), one("corp/vcbatch:1", args=["up"]), {"spec": {"template": 3}}, {}]
)
def test_other_workloads_are_none(workload: Json) -> None:
    assert program_of("Deployment", workload) is None


def test_what_a_scheduler_is_told_is_read_from_its_flags() -> None:
    arguments = ("--scheduler-conf=/volcano.scheduler/volcano-scheduler-ci.conf", "--scheduler-name", "gpu",
                 "--scheduler-name=cpu", "--leader-elect=false", "-v=3")  # fmt: skip
    found = program_of("Deployment", workload("volcano-scheduler", "vc-scheduler", "volcano-scheduler", *arguments))
    assert found is not None
    assert found.scheduler_names == ("gpu", "cpu")
    assert found.policy == ("volcano-scheduler-configmap", "volcano-scheduler-ci.conf")
    assert not found.leader_elect
    assert found.owner == Owner(tool="Helm", name="volcano", namespace="volcano-system")


def test_our_scheduler_names_its_config_map() -> None:
    found = program_of("Deployment", ours("s", "scheduler", "--scheduler-configmap", "ns/policy:a.conf"))
    assert found is not None
    assert found.policy == ("policy", "a.conf")
    assert found.leader_elect
    assert found.scheduler_names == ("volcano",)


def test_flags_in_all_of_gos_forms() -> None:
    assert list(flag(["-a=1", "--a", "2", "--a", "-b", "--ab=3"], "a")) == ["1", "2", "true"]


def test_names_of_images() -> None:
    assert image_name("reg:5000/a/b:v1@sha256:0") == "b"
    assert image_name("b") == "b"


@pytest.mark.parametrize(
    ("metadata", "owner"),
    [
        ({"annotations": {"argocd.argoproj.io/tracking-id": "vol:apps/Deployment:ns/x"}},
         Owner(tool="Argo CD", name="vol")),
        ({"labels": {"helm.toolkit.fluxcd.io/name": "v", "helm.toolkit.fluxcd.io/namespace": "flux"},
          "annotations": {"meta.helm.sh/release-name": "v"}}, Owner(tool="Flux", name="v", namespace="flux")),
        ({"labels": {"app.kubernetes.io/managed-by": "vcbatch-install"}}, Owner(tool="vcbatch-install")),
        ({"managedFields": [{"manager": "kubectl", "time": "2026-01-01T00:00:00Z"},
                            {"manager": "kube-apiserver", "time": "2026-02-01T00:00:00Z", "subresource": "status"}]},
         Owner(tool="kubectl")),
        ({"annotations": 7, "managedFields": [3]}, Owner()),
    ],
)  # fmt: skip
def test_who_keeps_an_object(metadata: Json, owner: Owner) -> None:
    assert owner_of({"metadata": metadata}) == owner
