"""New numbers in messages of many gangs: bounded in the whole cluster, each in its turn, news at once."""

from __future__ import annotations

from datetime import timedelta

from tests.unit.scheduler.cluster import START, Cluster
from vcbatch.scheduler.reasons.message_line import MESSAGES_AT_ONCE, MESSAGES_PER_SECOND, MessageLine

GANGS = 200
SECOND = timedelta(seconds=1)


class World(Cluster):
    """Gangs that wait on a cluster whose nodes change all the time."""

    def __init__(self, gangs: int) -> None:
        super().__init__()
        for number in range(gangs):
            self.gang(f"g{number:04}", 1, cpu="4")
        self.node("n0", cpu="2")
        self.cycle()

    def second(self, number: int) -> list[str]:
        """A second passes in which the numbers in all messages move; the gangs whose PodGroups are written."""
        self.node(f"small-{number:04}", cpu="1")
        return [update.name for update in self.cycle(after=1).podgroup_updates]


def test_few_gangs_are_told_every_half_minute() -> None:
    world = World(3)
    written = [(second, name) for second in range(95) for name in world.second(second)]
    assert len(written) == 9
    assert {second for second, _ in written} == {29, 59, 89}


def test_many_gangs_share_so_many_writes_a_second_each_in_its_turn() -> None:
    world = World(GANGS)
    seconds = 30 + (GANGS - MESSAGES_AT_ONCE) // MESSAGES_PER_SECOND + 30
    written = [world.second(second) for second in range(seconds)]
    assert max(map(len, written)) <= MESSAGES_AT_ONCE
    for at in range(seconds - 10):
        window = sum(len(names) for names in written[at : at + 10])
        assert window <= MESSAGES_AT_ONCE + 10 * MESSAGES_PER_SECOND
    steady = [len(names) for names in written[40:-30]]
    assert set(steady) == {MESSAGES_PER_SECOND}
    reported = [name for names in written for name in names]
    assert set(reported) == set(world.groups), "nobody is passed over"
    first_round = reported[:GANGS]
    assert len(set(first_round)) == GANGS, "nobody is told twice before all were told once"


def test_what_is_new_is_written_at_once_however_many_wait_for_their_turn() -> None:
    world = World(GANGS)
    for second in range(32):
        world.second(second)
    world.node("large", cpu="4")
    result = world.cycle(after=1)
    started = {bind.name.removesuffix("-worker-0") for bind in result.binds}
    assert len(started) == 1
    assert started <= {update.name for update in result.podgroup_updates}


def test_a_turn_comes_though_nothing_else_happens() -> None:
    world = World(1)
    assert world.second(0) == []
    result = world.cycle(after=1)
    assert result.requeue_at is not None
    world.now = result.requeue_at - SECOND
    assert [update.name for update in world.cycle(after=1).podgroup_updates] == ["g0000"]
    assert world.cycle(after=1).requeue_at is None


def test_after_a_restart_the_budget_holds_too() -> None:
    line = MessageLine()
    line.call(START)
    taken = [line.take(f"{number}", START, due=START) for number in range(GANGS)]
    assert taken == [True] * MESSAGES_AT_ONCE + [False] * (GANGS - MESSAGES_AT_ONCE)
    assert line.again(START) == START + SECOND
    called = line.call(START + SECOND)
    assert called == sorted(f"{number}" for number in range(MESSAGES_AT_ONCE, GANGS))[:MESSAGES_PER_SECOND]


def test_a_turn_that_isnt_used_costs_nothing_and_who_is_gone_has_none() -> None:
    line = MessageLine()
    line.call(START)
    due = START + 30 * SECOND
    for uid in ("a", "b", "gone"):
        assert not line.take(uid, START, due=due)
    line.forget("gone")
    assert line.call(due) == ["a", "b"]
    assert line.take("b", due, due=due)
    assert line.again(due) is None
    assert line.take("new", due, due=due)


def test_a_clock_that_goes_back_stops_nobody() -> None:
    line = MessageLine()
    line.call(START)
    for number in range(MESSAGES_AT_ONCE):
        assert line.take(f"{number}", START, due=START)
    earlier = START - timedelta(hours=1)
    line.call(earlier)
    assert not line.take("x", earlier, due=earlier)
    assert line.call(earlier + SECOND) == ["x"]
