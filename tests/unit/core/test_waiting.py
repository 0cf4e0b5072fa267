"""Why a job waits, by what is on the server."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vcbatch.api.messages import (
    behind_first,
    could_evict,
    executing,
    expected_start,
    expected_to_start,
    first_in_line,
    gang_unschedulable,
    protected_until,
    read_wait,
    waits_for,
    with_origin,
)
from vcbatch.api.names import WOULD_START_IF
from vcbatch.api.quantity import parse_quantity
from vcbatch.api.reasons import DisruptionLimit, JobReason, WaitReason
from vcbatch.api.remedies import Remedy, RemedyAction, written
from vcbatch.core.waiting import Surroundings, waiting_of

Json = dict[str, Any]
WHEN = datetime(2026, 5, 1, 12, tzinfo=UTC)


def job(name: str = "mine", *, phase: str = "Pending", reason: str = "", message: str = "") -> Json:
    state = {"phase": phase, "reason": reason, "message": message, "lastTransitionTime": "2026-05-01T11:00:00Z"}
    metadata = {"name": name, "namespace": "n", "uid": name}
    return {"metadata": metadata, "spec": {"queue": "q"}, "status": {"state": state}}


def group(
    name: str = "mine",
    *,
    phase: str = "Inqueue",
    at: int = 0,
    cpu: str = "4",
    queue: str = "q",
    priority: str = "",
    message: str = "",
) -> Json:
    said = {"type": "Unschedulable", "status": "True", "message": message, "lastTransitionTime": "2026-05-01T11:30:00Z"}
    resources = {"cpu": cpu, "requests.cpu": cpu, "pods": "2", "count/pods": "2"}
    return {
        "metadata": {
            "name": f"{name}-group",
            "namespace": "n",
            "uid": f"{name}-group",
            "creationTimestamp": f"2026-05-01T10:00:{at:02}Z",
            "ownerReferences": [{"kind": "Job", "name": name, "uid": name, "controller": True}],
        },
        "spec": {"queue": queue, "minMember": 2, "minResources": resources, "priorityClassName": priority},
        "status": {"phase": phase, "conditions": [said] if message else []},
    }


def queue(name: str, *, parent: str = "", cpu: str = "", held: str = "0") -> Json:
    spec: Json = {"parent": parent}
    if cpu:
        spec["capability"] = {"cpu": cpu}
    return {"metadata": {"name": name}, "spec": spec, "status": {"allocated": {"cpu": held}}}


def reported(reason: WaitReason, sentence: str) -> str:
    return gang_unschedulable(unready=2, total=2, why=with_origin("not ready", waits_for(reason, sentence)))


def test_the_schedulers_reason_and_numbers_are_read_back() -> None:
    sentence = f"0/5 nodes: short by cpu 3; {expected_to_start(WHEN)}"
    message = reported(WaitReason.INSUFFICIENT, sentence)
    found = waiting_of(job(reason="NotEnoughResources"), Surroundings(pod_groups=[group(message=message)]))
    assert found.reason is WaitReason.INSUFFICIENT
    assert found.message.startswith("0/5 nodes: short by cpu 3")
    assert found.since == datetime(2026, 5, 1, 11, 30, tzinfo=UTC)
    assert found.expected_start == WHEN
    assert found.gang is not None and found.gang.asks == {"cpu": parse_quantity("4")}


def test_what_the_controllers_say_of_the_job_itself_comes_first() -> None:
    held = job(reason=JobReason.PVC_ERROR, message="claim data isn't there")
    found = waiting_of(held, Surroundings(pod_groups=[group(message=reported(WaitReason.INSUFFICIENT, "x"))]))
    assert (found.reason, found.message) == (JobReason.PVC_ERROR, "claim data isn't there")


def test_of_a_job_that_was_suspended_it_is_said_who_asked_for_it() -> None:
    said = executing(action="AbortJob", cause="asked for by the Command stop")
    assert waiting_of(job(reason="", message=said), Surroundings()).message == "asked for by the Command stop"


def test_ahead_are_those_of_higher_priority_and_then_the_older_ones() -> None:
    groups = [
        group("younger", at=9),
        group("older", at=1),
        group("important", at=8, priority="high"),
        group("runs", phase="Running", at=0),
        group("elsewhere", queue="other", at=0),
        group(at=5),
    ]
    found = waiting_of(job(), Surroundings(pod_groups=groups, priorities={"high": 100}))
    assert [one.name for one in found.ahead] == ["important", "older"]
    assert found.position == 3
    assert [one.name for one in found.holders] == ["runs"]


def test_the_order_is_that_of_the_policy_where_it_is_known() -> None:
    groups = [group("younger", at=9), group("older", at=1), group("stranger", at=0), group(at=5)]
    places = {"younger-group": 0, "mine-group": 1, "older-group": 2}
    found = waiting_of(job(), Surroundings(pod_groups=groups, places=places))
    assert ([one.name for one in found.ahead], found.position, found.by_policy) == (["younger"], 2, True)
    assert str(found).endswith("\nnumber 2 of those that wait in queue q")
    unknown = waiting_of(job(), Surroundings(pod_groups=groups, places={"younger-group": 0}))
    assert ([one.name for one in unknown.ahead], unknown.by_policy) == (["stranger", "older"], False)


def line(*, message: str = "", **heads: Json) -> list[Json]:
    """The groups of a queue, the first first, with mine behind them and one more behind mine."""
    before = [group(name, at=at, **more) for at, (name, more) in enumerate(heads.items())]
    return [*before, group(at=30, message=message, phase="Pending"), group("later", at=40, phase="Pending")]


def held_up_by(groups: list[Json], *, fifo: bool = True, places: dict[str, int] | None = None) -> str:
    strategy = {"dequeueStrategy": "fifo" if fifo else "traverse"}
    queues = [{"metadata": {"name": "q"}, "spec": strategy}, {"metadata": {"name": "other"}, "spec": {}}]
    found = waiting_of(job(), Surroundings(pod_groups=groups, queues=queues, places=places)).held_up_by
    return "" if found is None else found.name


def test_the_first_of_a_line_holds_up_those_behind_it() -> None:
    groups = line(a={}, b={})
    assert held_up_by(groups) == "a"
    assert held_up_by(groups, fifo=False) == ""
    assert held_up_by(groups, places={"b-group": 0, "a-group": 1, "mine-group": 2}) == "b"
    assert held_up_by(line(a={"phase": "Running"}, b={})) == "b"
    assert held_up_by(line(a={"queue": "other"})) == ""


def test_who_is_not_tried_holds_up_nobody() -> None:
    for reason in WaitReason:
        groups = line(a={"message": reported(reason, "said")}, b={})
        passed = reason.hopeless or reason in (WaitReason.NOT_ENOUGH_PODS, WaitReason.GATED, WaitReason.PLUGIN_FAILED)
        assert held_up_by(groups) == ("b" if passed else "a"), reason


def test_who_waits_for_admission_holds_up_only_those_that_do_too() -> None:
    assert held_up_by(line(a={"phase": "Pending"}, b={})) == "a"
    assert held_up_by([group("a", at=0, phase="Pending"), group(at=1)]) == ""
    assert held_up_by(line(a={}, b={"phase": "Pending"})) == "b", "whom it meets first"


def test_whom_the_scheduler_names_goes_before_what_is_guessed() -> None:
    named = reported(WaitReason.QUEUE_LIMIT, behind_first(queue="q", first="n/b-group"))
    assert held_up_by(line(message=named, a={}, b={})) == "b"
    assert held_up_by(line(message=named, a={}, b={"phase": "Running"})) == "a", "it has started since"
    expected = behind_first(queue="q", first="n/b-group", expected=WHEN)
    assert held_up_by(line(message=reported(WaitReason.RESERVED, expected), a={}, b={})) == "b"
    assert first_in_line("queue q is first in, first out: n/cut...") == ""


def test_a_gang_is_told_whom_it_holds_up() -> None:
    fifo = [{"metadata": {"name": "q"}, "spec": {"dequeueStrategy": "fifo"}}]
    groups = [group(at=0), group("a", at=1), group("b", at=2, phase="Pending"), group("else", at=3, queue="other")]
    found = waiting_of(job(), Surroundings(pod_groups=groups, queues=fifo))
    assert ([one.name for one in found.holds_up], found.held_up_by) == (["a", "b"], None)
    second = waiting_of(job("a"), Surroundings(pod_groups=groups, queues=fifo))
    assert list(second.holds_up) == [], "those behind it are held up by the first, as it is itself"
    assert str(second).endswith("\nqueue q is first in, first out: n/mine is first")
    assert list(waiting_of(job(), Surroundings(pod_groups=groups)).holds_up) == []


def test_what_has_to_end_is_told_where_a_queue_is_full() -> None:
    groups = [
        group("first", phase="Running", at=1, cpu="2", queue="q"),
        group("second", phase="Running", at=2, cpu="3", queue="sister"),
        group("third", phase="Running", at=3, cpu="9", queue="sister"),
        group("far", phase="Running", at=0, cpu="9", queue="other"),
        group(message=reported(WaitReason.QUEUE_LIMIT, "short by cpu 4")),
    ]
    queues = [
        queue("q", parent="top", held="2"),
        queue("sister", parent="top", held="12"),
        queue("top", cpu="14", held="14"),
        queue("other"),
    ]
    found = waiting_of(job(), Surroundings(pod_groups=groups, queues=queues))
    assert found.limit is not None
    assert found.limit.queue == "top"
    assert found.limit.short_by == {"cpu": parse_quantity("4")}
    assert [one.name for one in found.holders] == ["first", "second", "third"]
    assert [one.name for one in found.enough] == ["first", "second"]


def test_nothing_would_be_enough_for_a_gang_that_is_larger_than_the_queue() -> None:
    groups = [
        group("small", phase="Running", cpu="1"),
        group(cpu="100", message=reported(WaitReason.IMPOSSIBLE, "never")),
    ]
    found = waiting_of(job(), Surroundings(pod_groups=groups, queues=[queue("q", cpu="10", held="1")]))
    assert found.limit is not None and not found.enough
    assert not found.limit.ever and found.limit.short_by == {"cpu": parse_quantity("90")}


def test_a_queue_that_can_never_hold_a_gang_is_named_before_one_that_is_full() -> None:
    groups = [
        group("small", phase="Running", cpu="6"),
        group(phase="Pending", cpu="8", message=reported(WaitReason.QUEUE_LIMIT, "4 left of 10")),
    ]
    queues = [queue("q", parent="top", cpu="10", held="6"), queue("top", cpu="7", held="6")]
    found = waiting_of(job(), Surroundings(pod_groups=groups, queues=queues))
    assert found.limit is not None and not found.enough
    assert (found.limit.queue, found.limit.ever, found.limit.short_by) == ("top", False, {"cpu": parse_quantity("1")})
    assert "never starts as things are: it asks for more than queue top may hold" in str(found)


@given(asks=st.integers(1, 20), held=st.integers(0, 20), most=st.integers(1, 20))
def test_a_gang_fits_some_time_exactly_where_the_whole_queue_would_be_enough(asks: int, held: int, most: int) -> None:
    given_group = group(phase="Pending", cpu=str(asks), message=reported(WaitReason.QUEUE_LIMIT, "short"))
    found = waiting_of(
        job(), Surroundings(pod_groups=[given_group], queues=[queue("q", cpu=str(most), held=str(held))])
    )
    assert (found.limit is None) == (asks + held <= most)
    assert found.limit is None or found.limit.ever == (asks <= most)


def test_what_was_admitted_keeps_room_from_what_was_not() -> None:
    never = reported(WaitReason.IMPOSSIBLE, "no node fits")
    admitted = group("admitted", phase="Inqueue", cpu="28", message=never)
    queues = [queue("q", cpu="30")]
    waiting = group(phase="Pending", at=1, cpu="6", message=reported(WaitReason.QUEUE_LIMIT, "2 left of 30"))
    found = waiting_of(job(), Surroundings(pod_groups=[admitted, waiting], queues=queues))
    assert found.limit is not None and found.limit.short_by == {"cpu": parse_quantity("4")}
    assert [(one.name, one.reason) for one in found.enough] == [("admitted", WaitReason.IMPOSSIBLE)]
    both = [admitted, group(at=1, cpu="6", message=reported(WaitReason.QUEUE_LIMIT, "2 left of 30"))]
    found = waiting_of(job(), Surroundings(pod_groups=both, queues=queues))
    assert found.limit is None and not found.holders


def test_a_job_that_nobody_looked_at_says_nothing() -> None:
    found = waiting_of({"metadata": {"name": "new"}}, Surroundings())
    assert (found.reason, found.message, found.gang, found.queue, found.position) == (None, "", None, "default", 0)


def test_a_running_job_waits_for_nothing() -> None:
    found = waiting_of(job(phase="Running"), Surroundings(pod_groups=[group(phase="Running")]))
    assert not found.position and not found.ahead and found.limit is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "spec", "status"]), inner),
    max_leaves=8,
)
_OBJECT = st.fixed_dictionaries(
    {"metadata": st.dictionaries(st.sampled_from(["name", "uid", "ownerReferences", "creationTimestamp"]), _JSON)},
    optional={"spec": st.dictionaries(st.sampled_from(["queue", "minResources", "parent", "capability"]), _JSON)}
    | {"status": st.dictionaries(st.sampled_from(["state", "conditions", "phase", "allocated"]), _JSON)},
)


@given(_OBJECT, st.lists(_OBJECT, max_size=3), st.lists(_OBJECT, max_size=3))
def test_odd_objects_keep_nobody_from_an_answer(one: Json, groups: list[Json], queues: list[Json]) -> None:
    waiting_of(one, Surroundings(pod_groups=groups, queues=queues))


@given(st.sampled_from(list(WaitReason)), st.text(max_size=40).filter(lambda text: ". Origin reason is " not in text))
def test_a_reason_survives_being_written(reason: WaitReason, sentence: str) -> None:
    assert read_wait(waits_for(reason, sentence)) == (reason, sentence)
    assert read_wait(with_origin("2/2 tasks", waits_for(reason, sentence))) == (reason, sentence)


def test_from_when_on_others_may_be_evicted_is_read_from_what_was_said() -> None:
    sentence = could_evict(pods=4, gangs=["n/old"], limit=DisruptionLimit.MIN_RUNTIME, allowed="30m", until=WHEN)
    message = reported(WaitReason.VICTIMS_PROTECTED, f"{sentence}; the gang needs cpu 2")
    found = waiting_of(job(), Surroundings(pod_groups=[group(message=message)]))
    assert found.evictable_from == WHEN
    assert str(found).endswith(f"others may be evicted for it from {WHEN:%Y-%m-%d %H:%M:%S} UTC on")
    never = could_evict(pods=4, gangs=["n/old"], limit=DisruptionLimit.PER_CYCLE, allowed="3", until=None)
    assert protected_until(never) is None


@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)))
def test_an_expected_start_survives_being_written(when: datetime) -> None:
    assert expected_start(f"x; {expected_to_start(when)}") == when.replace(microsecond=0)
    assert expected_start(f"x; {expected_to_start(when)}; room is kept") == when.replace(microsecond=0)
    assert expected_start("it is expected to start by and by") is None


def test_as_text_it_is_what_a_person_asks_for() -> None:
    groups = [
        group("first", phase="Running", at=1, cpu="2"),
        group(message=reported(WaitReason.QUEUE_LIMIT, "2 short")),
    ]
    found = waiting_of(job(), Surroundings(pod_groups=groups, queues=[queue("q", cpu="4", held="2")]))
    assert str(found).splitlines() == [
        f"Pending (QueueLimit): {found.message}",
        "number 1 of those that wait in queue q, by priority and then age",
        "starts once these have ended: n/first",
    ]
    soon = reported(WaitReason.INSUFFICIENT, f"short; {expected_to_start(WHEN)}")
    found = waiting_of(job(), Surroundings(pod_groups=[group(message=soon)]))
    assert str(found).splitlines()[-1] == "starts by 2026-05-01 12:00:00 UTC"
    assert str(waiting_of(job(phase="Completed"), Surroundings())) == "Completed"


def test_what_would_let_it_start_is_told_while_it_waits() -> None:
    free = Remedy(RemedyAction.FREE, "node/n1", "cpu", "2")
    waits = group(message=reported(WaitReason.INSUFFICIENT, "short by cpu 2 on node n1"))
    waits["metadata"]["annotations"] = {WOULD_START_IF: written([free])}
    found = waiting_of(job(), Surroundings(pod_groups=[waits]))
    assert found.would_start_if == [free]
    assert "would start if you: free cpu 2 on node/n1" in str(found)
    waits["status"]["conditions"] = []
    assert not waiting_of(job(), Surroundings(pod_groups=[waits])).would_start_if
