"""What becomes of jobs and of what is created for them where nobody asks the admission service.

Pods and PodGroups of an admitted job aren't asked about: nothing that their rules refuse may come of a job that the
rules of jobs accept. A job that was stored before the rules were in force means the same as one that was filled in.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.corpus.corpus import Case, bases, cases, changed, world
from tests.support.job_world import World
from vcbatch.api import names
from vcbatch.api.admission import Operation, Request, mutate, review
from vcbatch.api.model import Json
from vcbatch.api.resources import JOBS, PERSISTENTVOLUMECLAIMS, PODGROUPS, PODS, Resource

MOST_PODS = 200


def size(body: Json | None) -> int:
    """Pods of the job."""
    tasks = ((body or {}).get("spec") or {}).get("tasks") or ()
    return sum(task.get("replicas") or 0 for task in tasks if isinstance(task, dict))


NEW_JOBS = [
    case
    for case in cases()
    if case.request.resource == JOBS
    and case.request.operation is Operation.CREATE
    and not case.by_schema
    and size(case.request.object) <= MOST_PODS
]
GOOD = [case for case in NEW_JOBS if not case.says]
BAD = [case for case in NEW_JOBS if case.says]
BUDGETS = st.sampled_from([None, "1", "50%", "0", "100%", "x", ""])


def ids(found: Sequence[Case]) -> list[str]:
    return [case.name for case in found]


def played(stored: Json) -> World:
    """A cluster with that job, whose gang was let in and whose pods were made."""
    cluster = World(namespace=stored["metadata"].get("namespace") or "default")
    for queue in world().known:
        if queue.name != "default":
            cluster.put_queue(queue.name)
    job = copy.deepcopy(stored)
    job["metadata"].setdefault("name", "generated")
    cluster.put(JOBS, {**job, "metadata": {**job["metadata"], "uid": "job-uid"}})
    for volume in job["spec"].get("volumes") or ():
        if claim := volume.get("volumeClaimName"):
            cluster.put(PERSISTENTVOLUMECLAIMS, {"metadata": {"name": claim}, "status": {"phase": "Bound"}})
    name = job["metadata"]["name"]
    for _ in range(4):
        cluster.settle(name)
        cluster.schedule()
    return cluster


def refusals(resource: Resource, body: Json) -> list[str]:
    """What the rules say of creating the object, and of filling it in."""
    metadata = body["metadata"]
    plain = {key: value for key, value in body.items() if key != "status"}
    request = Request(
        resource=resource,
        operation=Operation.CREATE,
        name=metadata["name"],
        namespace=metadata["namespace"],
        object=plain,
    )
    verdict = review(request, world())
    changed_by = [] if mutate(request, world()) == plain else ["it would be filled in"]
    return [*([verdict.message] if verdict.message else []), *changed_by]


def all_refusals(cluster: World) -> list[str]:
    return [
        said for resource in (PODGROUPS, PODS) for body in cluster.all(resource) for said in refusals(resource, body)
    ]


STARTING = [case for case in GOOD if case.rule != "job/start"]
"""Those that no other job and no begin time holds."""


@pytest.mark.parametrize("case", STARTING, ids=ids(STARTING))
def test_nothing_that_is_created_for_an_admitted_job_would_be_refused(case: Case) -> None:
    cluster = played(case.filled)
    assert cluster.all(PODGROUPS), "nothing was judged"
    assert all_refusals(cluster) == []


@given(job=st.tuples(BUDGETS, BUDGETS), template=st.tuples(BUDGETS, BUDGETS))
def test_a_budget_is_refused_with_the_job_exactly_where_its_pods_would_be(
    job: tuple[str | None, str | None], template: tuple[str | None, str | None]
) -> None:
    def annotations(values: tuple[str | None, str | None]) -> Json:
        pairs = zip((names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE), values, strict=True)
        return {key: value for key, value in pairs if value is not None}

    body = changed(
        bases()["job"]["object"],
        {
            "/metadata/annotations": annotations(job),
            "/spec/tasks/0/template/metadata": {"annotations": annotations(template)},
        },
    )
    verdict = review(
        Request(resource=JOBS, operation=Operation.CREATE, name="j", namespace="default", object=body), world()
    )
    pods = [said for pod in played(body).all(PODS) for said in refusals(PODS, pod)]
    assert bool(verdict.errors) is bool(pods)


FILLED_IN = [case for case in GOOD if case.becomes and case.rule != "job/namespace-queue"]


@pytest.mark.parametrize("case", FILLED_IN, ids=ids(FILLED_IN))
def test_a_job_that_wasnt_filled_in_gets_the_same_pods(case: Case) -> None:
    assert case.request.object is not None
    ways = [played(stored) for stored in (case.filled, case.request.object)]
    for resource in (PODGROUPS, PODS):
        filled, bare = ([reported(body) for body in cluster.all(resource)] for cluster in ways)
        assert filled, "nothing was created"
        assert bare == filled
    filled, bare = (cluster.job(case.filled["metadata"].get("name", "generated")) for cluster in ways)
    assert bare["status"]["state"]["phase"] == filled["status"]["state"]["phase"]


def reported(body: Json) -> Json:
    """The object without what differs between any two."""
    metadata = {key: value for key, value in body["metadata"].items() if key not in ("uid", "resourceVersion")}
    return {**body, "metadata": metadata}


@pytest.mark.parametrize("case", BAD, ids=ids(BAD))
def test_a_job_that_would_have_been_refused_comes_to_rest(case: Case) -> None:
    assert case.request.object is not None
    cluster = played(case.request.object)
    job = cluster.job(case.request.object["metadata"].get("name", "generated"))
    assert job["status"]["state"]["phase"]
