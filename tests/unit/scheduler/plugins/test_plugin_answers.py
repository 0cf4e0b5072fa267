"""Plugins of the user's own that answer wrongly: it is said which, and what it should have answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.scheduler import parse_policy
from vcbatch.scheduler.framework.plugin import Cap, Normalise, OrderTerm, Plugin, Preference, Rejection
from vcbatch.scheduler.framework.policy import Extensions
from vcbatch.scheduler.plugins import PLUGINS
from vcbatch.scheduler.plugins.checked import WrongAnswer, checked

TEXT = """
actions: enqueue, allocate, preempt, shuffle
tiers:
- plugins: [{name: mine}]
- plugins: [{name: gang}, {name: predicates}]
"""
NAN = float("nan")
INFINITE = (
    "an array of float64 [3] with some that are no finite numbers; must be None, or an array of finite numbers "
    "[8, 3] or [3]"
)


def made(plugin: type[Plugin]) -> Cluster:
    cluster = Cluster(parse_policy(TEXT, extensions=Extensions(plugins={"mine": plugin})))
    for name in ("n1", "n2", "n3"):
        cluster.node(name)
    return cluster


def answering(hook: str, answer: Any, **members: Any) -> type[Plugin]:
    """A plugin whose method of this name answers so, whatever it is asked."""
    return type("Mine", (Plugin,), {hook: lambda self, *about, **named: answer, "__module__": __name__, **members})


def rows(count: int) -> Any:
    return np.zeros(count)


WRONG: Mapping[str, tuple[str, Any, str]] = {
    "a key that is no number": ("job_key", "high", "'high'; must be a number"),
    "a key that is not a number": ("job_key", NAN, "nan; must be a number"),
    "no key": ("task_key", None, "None; must be a number"),
    "a queue's key without a tuple": ("queue_key", 1.0, "1.0; must be a tuple of numbers"),
    "a sentence that is none": ("overused", True, "True; must be a str, or None"),
    "a truth that is none": ("job_ready", None, "None; must be True or False"),
    "a room that is no count": ("room", 1.5, "1.5; must be an int"),
    "a room that says whether": ("room", True, "True; must be an int"),
    "an empty verdict": ("enqueueable", None, "None; must be a Verdict"),
    "a mask of numbers": (
        "rejections",
        [Rejection("no", rows(3))],
        "must be a list of Rejection(str, array of bool [3])",
    ),
    "a mask of another length": (
        "rejections",
        [Rejection("no", np.zeros(1, dtype=bool))],
        "must be a list of Rejection(str, array of bool [3])",
    ),
    "a mask alone": (
        "rejections",
        np.zeros(3, dtype=bool),
        "an array of bool [3]; must be a list of Rejection(str, array of bool [3])",
    ),
    "preferences of another length": (
        "preferences",
        [Preference(rows(2), 1.0, Normalise.MAX)],
        "must be a list of Preference(array of finite numbers [3], number, Normalise)",
    ),
    "caps of another length": ("caps", [Cap("no", rows(9))], "must be a list of Cap(str, array of numbers [3])"),
    "scores of another length": (
        "scores",
        rows(2),
        "an array of float64 [2]; must be None, or an array of finite numbers [8, 3] or [3]",
    ),
    "scores that are no numbers": (
        "scores",
        np.full(3, NAN),
        INFINITE,
    ),
    "scores without end": (
        "scores",
        np.full(3, np.inf),
        INFINITE,
    ),
    "scores that are a list": (
        "scores",
        [1, 2, 3],
        "[1, 2, 3]; must be None, or an array of finite numbers [8, 3] or [3]",
    ),
    "annotations that are numbers": ("binding_annotations", {"a": 1}, "{'a': 1}; must be a dict of str to str"),
    "a lock that is none": ("node_lock", None, "None; must be a str"),
    "a stamp that can't be kept": (
        "limit_stamp",
        [1],
        "[1]; must be something that can be hashed, such as a tuple of numbers",
    ),
}


@pytest.mark.parametrize(("hook", "answer", "said"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_answer_is_its_plugins_error_and_nothing_is_bound_by_it(hook: str, answer: Any, said: str) -> None:
    cluster = made(answering(hook, answer))
    cluster.gang("g", 2, phase="Pending", minResources={"cpu": "2"})
    first, second = cluster.cycle(), cluster.cycle()
    assert [*first.binds, *second.binds] == []
    failure = (*first.failures, *second.failures)[0]
    assert (failure.name, failure.hook, failure.did) == ("mine", hook, "returned")
    assert said in failure.error
    assert failure.place.startswith(__file__)
    assert failure.sentence == f"mine.{hook} ({failure.place}) returned {failure.error}"


PLURAL = {"task_rejections": [Rejection("no", np.zeros(1, dtype=bool))], "task_scores": rows(7)}


@pytest.mark.parametrize("hook", PLURAL)
def test_answers_about_one_pod_are_looked_at_as_well(hook: str) -> None:
    cluster = made(answering(hook, PLURAL[hook], couples=lambda self, task: True))
    cluster.gang("g", 1)
    [failure] = cluster.cycle().failures
    assert (failure.hook, failure.gang) == (hook, "ns/g")
    reported = cluster.scheduler.explain("ns", "g")
    assert reported is not None
    assert reported.reason == "PluginFailed"
    assert f"mine.{hook} ({failure.place}) returned" in reported.message


def test_a_vote_that_is_a_number_is_none() -> None:
    cluster = made(answering("job_pipelined", 1))
    cluster.gang("old", 24)
    cluster.cycle()
    cluster.run("old")
    for name in cluster.placed("old"):
        cluster.change(name, deleting=True)
    cluster.gang("g", 1)
    [failure] = cluster.cycle().failures
    assert (failure.hook, failure.error, failure.gang) == ("job_pipelined", "1; must be a Vote", "ns/g")


def test_keys_of_many_gangs_are_looked_at() -> None:
    plugin = answering("job_keys", np.zeros(1))
    asked = checked(plugin)({})
    with pytest.raises(WrongAnswer, match=r"an array of float64 \[1\]; must be None, or an array of numbers \[2\]"):
        asked.job_keys(np.arange(2))


@pytest.mark.parametrize("terms", [None, ["share"], [OrderTerm(3)], [OrderTerm("share", 2)]])
def test_what_is_said_of_keys_is_looked_at(terms: Any) -> None:
    asked = checked(answering("queue_terms", terms))({})
    with pytest.raises(WrongAnswer, match=r"must be a list of OrderTerm\(str, -1, 0 or 1, str\)"):
        asked.queue_terms(None)


class Moves(Plugin):
    """Wants somebody moved who isn't among those that it was asked about."""

    def unwanted(self, running: Any) -> Any:
        return ["ns/g"] if len(running) else None


def test_nobody_is_evicted_who_was_not_asked_about() -> None:
    cluster = made(Moves)
    cluster.gang("g", 1)
    cluster.cycle()
    cluster.run("g")
    result = cluster.cycle()
    assert list(result.evictions) == []
    assert result.failures[0].error == "['ns/g']; must be None, or a list of tasks that are among those given"


class Fine(Plugin):
    """Answers in every form that is allowed."""

    BY_AMOUNTS = True

    def open(self, session: Any) -> None:
        self._infos = session.nodes.infos

    def job_key(self, job: Any) -> float:
        return np.float64(1.0)

    def queue_key(self, queue: Any) -> tuple[float, ...]:
        return (1, np.int64(2))  # type: ignore[return-value]

    def job_ready(self, job: Any) -> bool:
        return np.bool_(True)  # type: ignore[return-value]

    def room(self, queue: Any, request: Any) -> int:
        return np.int64(2)  # type: ignore[return-value]

    def rejections(self, profile: Any) -> Any:
        return (Rejection("node(s) are first", np.array([info.name == "n1" for info in self._infos], dtype=bool)),)

    def scores(self, cls: Any, columns: Any) -> Any:
        return np.array([0.0, 1.0, 2.0])[columns.rows]

    def caps(self, cls: Any, rows: Any) -> Any:
        return [Cap("node(s) have enough", np.full(len(rows), np.inf))]


def test_answers_that_can_be_used_are_used() -> None:
    cluster = made(Fine)
    cluster.gang("g", 3, minimum=1)
    result = cluster.cycle()
    assert result.failures == ()
    assert sorted(cluster.placed("g").values()) == ["n3", "n3", "n3"]


class Keeps(Plugin):
    """Has names of its own for what it keeps."""

    nodes: Any = ()

    def open(self, session: Any) -> None:
        self.nodes = session.nodes
        self.count = len(self.nodes)

    def rejections(self, profile: Any) -> Any:
        return [Rejection("node(s) are first", np.arange(len(self.nodes)) == 0)]


def test_a_plugin_may_call_what_it_keeps_as_it_likes() -> None:
    cluster = made(Keeps)
    cluster.gang("g", 1)
    assert cluster.cycle().failures == ()
    assert cluster.placed("g") == {"g-worker-0": "n2"}


class Tilt:
    """Says points that move, and fails."""

    def points(self, rows: Any, candidates: Any) -> Any:
        raise LookupError("no such row")

    def placed(self, row: int) -> None:
        return None


class Leans(Plugin):
    def leaning(self, job: Any, sub: Any, cls: Any, domain: Any) -> Any:
        return Tilt()


def test_what_a_plugin_answers_with_is_its_own_too() -> None:
    cluster = made(Leans)
    cluster.gang("g", 1)
    [failure] = cluster.cycle().failures
    assert (failure.name, failure.hook, failure.error) == ("mine", "points", "LookupError: no such row")
    assert failure.gang == "ns/g"


def test_a_check_is_there_for_every_method_that_answers() -> None:
    """Those without one return nothing, an object of their own, or what names their mode or their books."""
    without = {
        *("open", "close", "placed", "moved", "enqueued", "count_admission", "reserve", "leaning", "queue_kin"),
        *("of_mode", "ignored_resources", "config_maps", "devices_by_claim"),
    }
    methods = {name for name in vars(Plugin) if name[0] != "_" and callable(getattr(Plugin, name))}
    checked_at = {name for name in methods if checked(made := answering(name, None)) is not made}
    assert methods - checked_at == without


def test_plugins_of_ours_are_not_looked_at() -> None:
    assert all(checked(cls) is cls for cls in PLUGINS.values())
