"""Suggestions for misspelt names of queues, namespaces and other objects."""

from __future__ import annotations

import pytest

from tests.support.served_cluster import served_cluster
from vcbatch.api.resources import JOBS, QUEUES
from vcbatch.cli.base.reach import Access
from vcbatch.cli.base.suggestions import suggestion, unknown_namespace
from vcbatch.interfaces.api import ApiError
from vcbatch.runtime.client.kubeconfig import Connection

CLUSTER = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}},
    {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": "research"}},
    {"apiVersion": JOBS.api_version, "kind": "Job", "metadata": {"name": "train", "namespace": "team"}},
]


def refused(message: str, *, code: int = 404, kind: str = "", name: str = "") -> ApiError:
    return ApiError(code=code, reason="", message=message, details={"kind": kind, "name": name})


@pytest.mark.parametrize(
    ("error", "namespace", "hint"),
    [
        (refused("not found", kind="queues", name="reserch"), "team", "Did you mean queue research?"),
        (refused("not found", kind="queues", name="zzz"), "team", ""),
        (refused("not found", kind="jobs", name="trian"), "team", "Did you mean job train?"),
        (refused("not found", kind="jobs", name="other"), "tema", "Namespace 'tema' not found; did you mean 'team'?"),
        (refused("not found", kind="jobs", name="other"), "team", ""),
        (refused("not found", kind="namespaces", name="tem"), "tem", "Did you mean namespace team?"),
        (refused('no: queue.scheduling.volcano.sh "reserch" not found', code=400), "t", "Did you mean queue research?"),
        (refused("the server could not find the requested resource"), "team", ""),
        (refused("exists", code=409, kind="queues", name="research"), "team", ""),
    ],
)
def test_a_misspelt_name_is_suggested(error: ApiError, namespace: str, hint: str) -> None:
    with served_cluster(CLUSTER) as cluster:
        assert suggestion(error, Connection(server=cluster.url), namespace=namespace) == hint


def test_the_suggestion_replaces_the_general_hint() -> None:
    with served_cluster(CLUSTER) as cluster:
        access = Access(server=cluster.url, chosen_namespace="team")
        access.connection()
        assert access.refusal(refused("not found", kind="jobs", name="trian")).hint == "Did you mean job train?"
        assert "--namespace" in access.refusal(refused("not found", kind="jobs", name="zzz")).hint


def test_without_the_list_of_namespaces_none_is_unknown() -> None:
    with served_cluster(CLUSTER[1:]) as cluster:
        assert unknown_namespace(Connection(server=cluster.url), "tema") == ""
