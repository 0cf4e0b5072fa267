"""Which containers start, and what a pod's status says: Kubernetes' rules, as examples and as properties."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcbatch.local.kubelet import lifecycle
from vcbatch.local.kubelet.lifecycle import FRESH, ContainerState, Ended, Running, Waiting
from vcbatch.local.kubelet.status import Verdict, changed, phase, pod_status

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def end(code: int, *, finished: datetime = NOW, ran: float = 1.0) -> Ended:
    return Ended(exit_code=code, started_at=finished - timedelta(seconds=ran), finished_at=finished)


def running() -> ContainerState:
    return ContainerState(state=Running(started_at=NOW))


def over(code: int, crashes: int = 1) -> ContainerState:
    return ContainerState(state=end(code), crashes=crashes)


def pod(*names: str, policy: str = "Never", init: tuple[str, ...] = (), sidecars: tuple[str, ...] = ()) -> dict:
    inits = [{"name": n, "restartPolicy": "Always"} if n in sidecars else {"name": n} for n in init]
    return {"restartPolicy": policy, "containers": [{"name": n} for n in names], "initContainers": inits}


@pytest.mark.parametrize(
    ("spec", "states", "start"),
    [
        (pod("a", "b"), {}, ("a", "b")),
        (pod("a", "b"), {"a": running()}, ("b",)),
        (pod("a"), {"a": over(0)}, ()),
        (pod("a"), {"a": over(1)}, ()),
        (pod("a", policy="OnFailure"), {"a": over(1)}, ("a",)),
        (pod("a", policy="OnFailure"), {"a": over(0)}, ()),
        (pod("a", policy="Always"), {"a": over(0)}, ("a",)),
        (pod("a", init=("i", "j")), {}, ("i",)),
        (pod("a", init=("i", "j")), {"i": running()}, ()),
        (pod("a", init=("i", "j")), {"i": over(0)}, ("j",)),
        (pod("a", init=("i", "j")), {"i": over(0), "j": over(0)}, ("a",)),
        (pod("a", init=("i",)), {"i": over(1)}, ()),
        (pod("a", init=("i",), policy="Always"), {"i": over(1)}, ("i",)),
        (pod("a", init=("s",), sidecars=("s",)), {}, ("s", "a")),
        (pod("a", init=("s",), sidecars=("s",)), {"s": running()}, ("a",)),
        (pod("a", init=("s",), sidecars=("s",)), {"s": over(1), "a": running()}, ("s",)),
    ],
)
def test_which_containers_start(spec: dict, states: dict, start: tuple[str, ...]) -> None:
    assert tuple(lifecycle.plan(spec, states, NOW).start) == start


def test_a_sidecar_that_has_yet_to_start_up_holds_the_others_back() -> None:
    slow = ContainerState(state=Running(started_at=NOW, started=False))
    assert lifecycle.plan(pod("a", init=("s",), sidecars=("s",)), {"s": slow}, NOW) == lifecycle.Plan()


def test_sidecars_end_after_the_last_container_the_latest_first() -> None:
    spec = pod("a", init=("s", "t"), sidecars=("s", "t"))
    plan = lifecycle.plan(spec, {"s": running(), "t": running(), "a": over(0)}, NOW)
    assert (tuple(plan.end), plan.finished) == (("t", "s"), False)
    assert lifecycle.plan(spec, {"s": over(143), "t": over(143), "a": over(0)}, NOW).finished


@pytest.mark.parametrize(
    ("crashes", "seconds"),
    [(0, 0), (1, 0), (2, 10), (3, 20), (4, 40), (5, 80), (6, 160), (7, 300), (8, 300), (99, 300)],
)
def test_the_back_off_doubles_up_to_five_minutes(crashes: int, seconds: int) -> None:
    assert lifecycle.backoff_delay(crashes) == timedelta(seconds=seconds)


def test_a_long_run_is_forgiven() -> None:
    state = ContainerState(state=Running(started_at=NOW), crashes=6)
    assert lifecycle.ended(state, end(1, ran=601)).crashes == 1
    assert lifecycle.ended(state, end(1, ran=599)).crashes == 7


def test_a_back_off_is_waited_out() -> None:
    spec, states = pod("a", policy="Always"), {"a": over(1, crashes=2)}
    plan = lifecycle.plan(spec, states, NOW + timedelta(seconds=9))
    assert (plan.start, plan.requeue_at) == ((), NOW + timedelta(seconds=10))
    assert lifecycle.plan(spec, states, NOW + timedelta(seconds=10)).start == ("a",)


@pytest.mark.parametrize(
    ("spec", "states", "want"),
    [
        (pod("a"), {}, "Pending"),
        (pod("a"), {"a": running()}, "Running"),
        (pod("a", "b"), {"a": running()}, "Pending"),
        (pod("a", "b"), {"a": running(), "b": over(1)}, "Running"),
        (pod("a", "b"), {"a": over(0), "b": over(0)}, "Succeeded"),
        (pod("a", "b"), {"a": over(0), "b": over(1)}, "Failed"),
        (pod("a", policy="OnFailure"), {"a": over(1)}, "Running"),
        (pod("a", policy="OnFailure"), {"a": over(0)}, "Succeeded"),
        (pod("a", policy="Always"), {"a": over(0)}, "Running"),
        (pod("a", policy="Always"), {"a": lifecycle.waiting(over(1), "CrashLoopBackOff")}, "Running"),
        (pod("a", init=("i",)), {"i": running()}, "Pending"),
        (pod("a", init=("i",)), {"i": over(1)}, "Failed"),
        (pod("a", init=("i",), policy="OnFailure"), {"i": over(1)}, "Pending"),
        (pod("a", init=("i",)), {"i": over(0), "a": running()}, "Running"),
        (pod("a", init=("s",), sidecars=("s",)), {"s": running(), "a": over(0)}, "Running"),
        (pod("a", init=("s",), sidecars=("s",)), {"s": over(143), "a": over(0)}, "Succeeded"),
    ],
)
def test_the_phase(spec: dict, states: dict, want: str) -> None:
    assert phase(spec, states) == want


def test_a_verdict_waits_for_the_containers_to_end() -> None:
    verdict = Verdict(reason="DeadlineExceeded", message="too long")
    assert phase(pod("a"), {"a": running()}, verdict) == "Running"
    assert phase(pod("a"), {"a": over(0)}, verdict) == "Failed"


states = st.one_of(
    st.just(FRESH),
    st.just(running()),
    st.builds(over, st.sampled_from([0, 1, 137]), st.integers(0, 5)),
    st.builds(lambda code: lifecycle.waiting(over(code, 3), "CrashLoopBackOff"), st.sampled_from([0, 1])),
    st.just(ContainerState(state=Waiting(reason="CreateContainerConfigError"))),
)
worlds = st.builds(
    lambda policy, inits, mains, drawn: (
        pod(*mains, policy=policy, init=inits, sidecars=tuple(n for n in inits if n.startswith("s"))),
        dict(zip((*inits, *mains), drawn, strict=False)),
    ),
    st.sampled_from(["Always", "OnFailure", "Never"]),
    st.sampled_from([(), ("i",), ("i", "s"), ("s", "i"), ("s",)]),
    st.sampled_from([("a",), ("a", "b")]),
    st.lists(states, max_size=4),
)


@settings(max_examples=300)
@given(worlds)
def test_no_plan_contradicts_the_picture(world: tuple[dict, dict]) -> None:
    spec, known = world
    plan = lifecycle.plan(spec, known, NOW)
    alive = {name for name, state in known.items() if isinstance(state.state, Running)}
    assert not alive & set(plan.start), "what runs isn't started"
    assert set(plan.end) <= alive, "only what runs is ended"
    assert len(set(plan.start)) == len(plan.start)
    if plan.finished:
        assert not plan.start
        assert not alive & {container["name"] for container in spec["containers"]}
    if phase(spec, known) in ("Succeeded", "Failed"):
        assert plan.finished, "a terminal phase means that nothing will run again"
        assert not alive


@settings(max_examples=200)
@given(worlds)
def test_a_status_is_stable_and_consistent(world: tuple[dict, dict]) -> None:
    spec, known = world
    fixed = {"spec": spec, "states": known, "host_ip": "127.0.0.1", "pod_ip": "127.64.0.1", "start_time": NOW}
    status = pod_status(**fixed, previous={}, now=NOW)
    again = pod_status(**fixed, previous=status, now=NOW + timedelta(hours=1))
    assert not changed(status, again), "nothing has happened, so nothing is written"
    conditions = {c["type"]: c["status"] for c in status["conditions"]}
    if conditions["Ready"] == "True" and conditions["Initialized"] == "True":
        assert status["phase"] == "Running"
    if status["phase"] in ("Succeeded", "Failed"):
        assert conditions["Ready"] == "False"
    assert len(status["containerStatuses"]) == len(spec["containers"])


def test_a_condition_keeps_its_time_until_it_turns() -> None:
    fixed = {"spec": pod("a"), "host_ip": "h", "pod_ip": "p", "start_time": NOW}
    before = pod_status(**fixed, states={"a": running()}, previous={}, now=NOW)
    after = pod_status(**fixed, states={"a": over(0)}, previous=before, now=NOW + timedelta(minutes=1))
    times = {c["type"]: c["lastTransitionTime"] for c in after["conditions"]}
    assert times["PodScheduled"] == "2026-01-01T00:00:00Z"
    assert times["Ready"] == "2026-01-01T00:01:00Z"


def rule(action: str, operator: str, *codes: int) -> dict:
    return {"action": action, "exitCodes": {"operator": operator, "values": list(codes)}}


@pytest.mark.parametrize(
    ("pod_policy", "own", "code", "again"),
    [
        ("Never", {"restartPolicy": "Always"}, 0, True),
        ("Never", {"restartPolicy": "OnFailure"}, 0, False),
        ("Never", {"restartPolicy": "OnFailure"}, 1, True),
        ("Always", {"restartPolicy": "Never"}, 1, False),
        ("Never", {"restartPolicy": "Never", "restartPolicyRules": [rule("Restart", "In", 42, 43)]}, 42, True),
        ("Never", {"restartPolicy": "Never", "restartPolicyRules": [rule("Restart", "In", 42, 43)]}, 1, False),
        ("Never", {"restartPolicy": "Never", "restartPolicyRules": [rule("Restart", "NotIn", 42)]}, 42, False),
        ("Never", {"restartPolicy": "Never", "restartPolicyRules": [rule("Restart", "NotIn", 42)]}, 0, True),
        ("Never", {"restartPolicyRules": [rule("Restart", "In", 42)]}, 42, False),
        ("OnFailure", {"restartPolicy": "Never", "restartPolicyRules": [rule("Restart", "Like", 42)]}, 42, False),
        ("OnFailure", {"restartPolicy": "Never", "restartPolicyRules": [{"action": "Restart"}]}, 42, False),
    ],
)
def test_a_containers_own_policy_and_rules_come_before_its_pods(
    pod_policy: str, own: dict, code: int, again: bool
) -> None:
    spec = {"restartPolicy": pod_policy, "containers": [{"name": "a", **own}]}
    states = {"a": over(code)}
    assert tuple(lifecycle.plan(spec, states, NOW).start) == (("a",) if again else ())
    assert lifecycle.plan(spec, states, NOW).finished is not again
    assert phase(spec, states) == ("Running" if again else "Failed" if code else "Succeeded")


def test_an_init_container_may_be_tried_again_by_its_own_policy() -> None:
    spec = pod("a", init=("i",))
    spec["initContainers"][0]["restartPolicy"] = "OnFailure"
    assert tuple(lifecycle.plan(spec, {"i": over(1)}, NOW).start) == ("i",)
    assert phase(spec, {"i": over(1)}) == "Pending"
    assert tuple(lifecycle.plan(spec, {"i": over(0)}, NOW).start) == ("a",)


def test_one_exit_code_restarts_all_containers_from_the_first_init_container_on() -> None:
    spec = pod("a", "b", init=("i",))
    spec["containers"][0] |= {"restartPolicy": "Never", "restartPolicyRules": [rule("RestartAllContainers", "In", 9)]}
    states = {"i": over(0), "a": over(9), "b": running()}
    assert lifecycle.plan(spec, states, NOW) == lifecycle.Plan(kill=("b",))
    assert phase(spec, states) == "Running"

    states["b"] = lifecycle.ended(states["b"], end(137))
    assert lifecycle.plan(spec, states, NOW) == lifecycle.Plan(renew=True)
    states = lifecycle.renewed(states)
    assert phase(spec, states) == "Running"
    assert lifecycle.plan(spec, states, NOW) == lifecycle.Plan(start=("i",))

    states["i"] = lifecycle.started(states["i"], Running(started_at=NOW))
    assert (states["i"].restarts, states["i"].last) == (1, end(0))
    states["i"] = lifecycle.ended(states["i"], end(0))
    assert tuple(lifecycle.plan(spec, states, NOW).start) == ("a", "b")
    for name in ("a", "b"):
        states[name] = lifecycle.started(states[name], Running(started_at=NOW))
    assert phase(spec, states) == "Running"
    assert lifecycle.plan(spec, states, NOW) == lifecycle.Plan()
    assert [states[name].restarts for name in ("i", "a", "b")] == [1, 1, 1]
    for name in ("a", "b"):
        states[name] = lifecycle.ended(states[name], end(0))
    assert phase(spec, states) == "Succeeded"
