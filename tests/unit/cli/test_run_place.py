"""Where the pods of `vcbatch run` may go on the server of this machine."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.served_cluster import served_cluster
from vcbatch.api.names import VIRTUAL_NODE
from vcbatch.cli.access import Access
from vcbatch.cli.run.place import on_this_machine

Json = dict[str, Any]


def node(name: str, *, virtual: bool) -> Json:
    labels = {VIRTUAL_NODE: "true"} if virtual else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


@pytest.mark.parametrize("virtual", [False, True])
def test_no_program_goes_where_it_would_only_pretend_to_run(virtual: bool) -> None:
    job: Json = {"spec": {"tasks": [{"template": {"spec": {"containers": []}}} for _ in range(2)]}}
    with served_cluster([node("local", virtual=False), node("other", virtual=virtual)]) as cluster:
        placed = on_this_machine(job, Access(server=cluster.url))
    for task in placed["spec"]["tasks"]:
        affinity = task["template"]["spec"].get("affinity")
        assert (affinity is not None) == virtual
        if affinity is not None:
            required = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            (expression,) = required["nodeSelectorTerms"][0]["matchExpressions"]
            assert expression == {"key": VIRTUAL_NODE, "operator": "NotIn", "values": ["true"]}
