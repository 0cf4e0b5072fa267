"""The extender plugin: what is asked of the server, what its answers do, and what its failures don't."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.scoring import plugin_of, policy, requests, session, task_of
from vcbatch.scheduler import Policy, PolicyError, Scheduler
from vcbatch.scheduler.framework.consultant import ConsultError
from vcbatch.scheduler.plugins.extender import Extender
from vcbatch.scheduler.policy.reader import with_actions

NAME = "extender"
URL = "http://extender:8080/"
Json = dict[str, Any]
Answer = Callable[[Json], object]


class _Server:
    """Answers by verb; a verb without an answer is one that fails."""

    def __init__(self, **answers: Answer) -> None:
        self.answers = answers
        self.asked: list[tuple[str, Json]] = []
        self.timeouts: set[float] = set()

    def ask(self, url: str, question: Mapping[str, Any], *, timeout: float) -> object:
        prefix, _, verb = url.rpartition("/")
        assert prefix == "http://extender:8080"
        self.asked.append((verb, dict(question)))
        self.timeouts.add(timeout)
        if verb not in self.answers:
            raise ConsultError("connection refused")
        return self.answers[verb](dict(question))

    @property
    def verbs(self) -> list[str]:
        return [verb for verb, _ in self.asked]


def _policy(*verbs: str, actions: str = "enqueue, allocate, backfill", **given: Any) -> Policy:
    arguments: Json = {"extender.urlPrefix": URL, **{f"extender.{verb}Verb": verb for verb in verbs}}
    arguments |= {f"extender.{key}": value for key, value in given.items()}
    made = policy(NAME, arguments, "predicates")
    return with_actions(made, actions)


def _cluster(server: _Server, given: Policy, *nodes: str) -> Cluster:
    cluster = Cluster(given)
    cluster.scheduler = Scheduler(given, consultant=server)
    cluster.queue("default")
    for node in nodes:
        cluster.node(node, cpu="4", x_gpu="1")
    return cluster


def test_nodes_are_refused_one_by_one_and_only_those_with_room_are_asked_about() -> None:
    def predicate(question: Json) -> Json:
        return {"status": "no license" if question["node"]["Name"] == "a" else "", "code": 0}

    server = _Server(predicate=predicate)
    cluster = _cluster(server, _policy("predicate", httpTimeout="250ms"), "a", "b")
    cluster.node("small", cpu="500m")
    cluster.gang("g", 5, minimum=1)
    result = cluster.cycle()
    assert set(cluster.placed("g").values()) == {"b"}
    assert len(cluster.placed("g")) == 4
    assert "small" not in {q["node"]["Name"] for _, q in server.asked}
    assert server.timeouts == {0.25}
    assert "1 node(s) were refused by the extender: no license" in result.pod_conditions[0].message


def test_questions_have_the_names_that_volcanos_servers_read() -> None:
    server = _Server(predicate=lambda q: {"status": ""})
    cluster = _cluster(server, _policy("predicate"), "n")
    cluster.gang("g", 1)
    cluster.cycle()
    ((_, question),) = server.asked
    task, node = question["task"], question["node"]
    assert task["UID"] == "pod-g-worker-0"
    assert (task["Job"], task["Name"], task["Namespace"], task["Status"]) == ("ns/g", "g-worker-0", "ns", 1)
    assert task["Resreq"] == {"MilliCPU": 1000.0, "Memory": 2.0**30, "ScalarResources": {}, "MaxTaskNum": 1}
    assert task["Pod"]["metadata"]["name"] == "g-worker-0"
    assert node["Idle"]["MilliCPU"] == node["Allocatable"]["MilliCPU"] == 4000.0
    assert node["Allocatable"]["ScalarResources"] == {"x/gpu": 1000.0}
    assert node["Node"]["metadata"]["name"] == "n"


def test_points_of_the_server_count() -> None:
    server = _Server(prioritize=lambda q: {"nodeScore": {"b": 7.5, "a": 1}})
    cluster = _cluster(server, _policy("prioritize"), "a", "b")
    cluster.gang("g", 1)
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "b"}


@pytest.mark.parametrize("given", ["x/gpu", ["x/gpu"], "x/other, x/gpu"])
def test_only_tasks_with_resources_that_are_the_servers_are_asked_about(given: object) -> None:
    server = _Server(predicate=lambda q: {"status": ""})
    cluster = _cluster(server, _policy("predicate", managedResources=given), "n")
    cluster.gang("plain", 1)
    cluster.gang("gpu", 1)
    requests(cluster, "gpu-worker-0", cpu="1", memory="1Gi", x_gpu="1")
    cluster.cycle()
    assert [q["task"]["Name"] for _, q in server.asked] == ["gpu-worker-0"]
    assert (len(cluster.placed("plain")), len(cluster.placed("gpu"))) == (1, 1)


def test_gangs_and_queues_are_asked_about() -> None:
    server = _Server(
        jobEnqueueable=lambda q: {"status": -1 if q["job"]["Name"] == "no" else 1},
        jobEnqueued=lambda q: None,
        jobReady=lambda q: {"status": q["job"]["MinAvailable"] < 3},
        queueOverused=lambda q: {"overused": q["queue"]["Name"] == "full"},
    )
    cluster = _cluster(server, _policy("jobEnqueueable", "jobEnqueued", "jobReady", "queueOverused"), "a", "b")
    cluster.queue("full")
    cluster.gang("no", 1, phase="Pending", minResources={"cpu": "1"})
    cluster.gang("yes", 2, phase="Pending", minResources={"cpu": "2"})
    cluster.gang("big", 3)
    cluster.gang("stuck", 1, queue="full")
    cluster.cycle()
    assert len(cluster.placed("yes")) == 2
    assert [len(cluster.placed(name)) for name in ("no", "big", "stuck")] == [0, 0, 0]
    assert [q["job"]["Name"] for verb, q in server.asked if verb == "jobEnqueued"] == ["yes"]
    assert cluster.groups["no"]["status"]["phase"] == "Pending"


def test_the_server_hears_of_cycles_and_placements() -> None:
    verbs = ("onSessionOpen", "onSessionClose", "allocateFunc", "deallocateFunc")
    server = _Server(**{verb: lambda q: None for verb in verbs})
    cluster = _cluster(server, _policy(*verbs), "n")
    cluster.gang("g", 1)
    cluster.gang("large", 5)
    cluster.cycle()
    assert server.verbs[0] == "onSessionOpen"
    assert server.verbs[-1] == "onSessionClose"
    assert server.verbs.count("allocateFunc") == 1 + server.verbs.count("deallocateFunc")
    opened = server.asked[0][1]
    assert set(opened["Jobs"]) == {"ns/g", "ns/large"}
    assert opened["NodeList"] == ["n"]
    assert set(opened["Queues"]) == {"default"}


ERRORS: list[Answer] = [lambda q: [], lambda q: {"status": 3}, lambda q: None]


@pytest.mark.parametrize("error", [None, *ERRORS])
def test_a_server_that_fails_has_gangs_wait_with_a_reason_until_it_answers(error: Answer | None) -> None:
    server = _Server(**({"predicate": error} if error else {}))
    cluster = _cluster(server, _policy("predicate"), "a", "b")
    for name in ("g", "h"):
        cluster.gang(name, 2)
    result = cluster.cycle()
    assert cluster.placed("g") == {}
    assert len(server.asked) == 1, "it isn't asked again in a cycle in which it failed"
    assert "2 extender" in result.pod_conditions[0].message
    assert " failed: " in result.pod_conditions[0].message
    assert result.requeue_at is not None
    server.answers["predicate"] = lambda q: {"status": ""}
    cluster.cycle()
    assert len(cluster.placed("g")) == 2


@pytest.mark.parametrize(
    "verb", ["onSessionOpen", "predicate", "prioritize", "jobEnqueueable", "jobReady", "queueOverused", "allocateFunc"]
)
@pytest.mark.parametrize("ignorable", [True, False])
def test_whether_a_failure_matters_is_the_policys_to_say(verb: str, ignorable: bool) -> None:
    server = _Server(predicate=lambda q: {"status": ""})
    del server.answers["predicate"]
    cluster = _cluster(server, _policy(verb, "predicate", ignorable=ignorable), "n")
    cluster.gang("g", 1, phase="Pending", minResources={"cpu": "1"})
    cluster.cycle()
    assert len(cluster.placed("g")) == (1 if ignorable else 0)


def test_without_anybody_to_ask_gangs_wait() -> None:
    cluster = Cluster(_policy("predicate"))
    cluster.node("n")
    cluster.gang("g", 1)
    result = cluster.cycle()
    assert cluster.placed("g") == {}
    assert "can't ask anybody" in result.pod_conditions[0].message


@pytest.mark.parametrize(
    ("answer", "evicted"),
    [
        ({"status": 1, "victims": [{"UID": "pod-low-worker-1"}]}, ["low-worker-1"]),
        ({"status": -1}, []),
        ({"status": 1, "victims": []}, []),
        ({"status": 0}, None),
    ],
)
def test_victims_are_those_that_the_server_names(answer: Json, evicted: list[str] | None) -> None:
    server = _Server(preemptable=lambda q: answer)
    given = _policy("preemptable", actions="allocate, preempt")
    cluster = _cluster(server, given, "n")
    cluster.gang("low", 4, minimum=1)
    cluster.cycle()
    cluster.run("low")
    cluster.gang("high", 1)
    opened = session(cluster, given)
    opened.consultant = server
    victims = [task_of(opened, f"low-worker-{i}") for i in range(4)]
    found = plugin_of(opened, Extender).preemptable(task_of(opened, "high-worker-0"), victims)
    assert (None if found is None else [task.name for task in found]) == evicted


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "arguments.extender.urlPrefix: must be an http or https URL, got None"),
        ({"extender.urlPrefix": "extender:8080"}, "arguments.extender.urlPrefix: must be an http or https URL"),
        (
            {"extender.urlPrefix": URL, "extender.httpTimeout": "1"},
            "arguments.extender.httpTimeout: must be a duration",
        ),
        ({"extender.urlPrefix": URL, "extender.httpTimeout": "1m"}, "and at most 30s, such as 1s, got '1m'"),
        ({"extender.urlPrefix": URL, "extender.httpTimeout": 1}, "arguments.extender.httpTimeout: must be a duration"),
        (
            {"extender.urlPrefix": URL, "extender.ignorable": "so"},
            "arguments.extender.ignorable: must be true or false",
        ),
        ({"extender.urlPrefix": URL, "extender.managedResources": [3]}, "managedResources[0]: must be a string, got 3"),
        ({"extender.urlPrefix": URL, "extender.predicateVerb": 3}, "predicateVerb: must be a string, got 3"),
    ],
)
def test_ill_typed_arguments_are_refused_with_their_place(arguments: Json, message: str) -> None:
    with pytest.raises(PolicyError) as refused:
        policy(NAME, arguments)
    assert message in str(refused.value)
