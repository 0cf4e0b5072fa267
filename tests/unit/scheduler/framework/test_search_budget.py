"""Which gangs a cycle searches placements for, and which again in the next."""

from __future__ import annotations

from vcbatch.scheduler.framework.search_budget import MOST_SEARCHES, Searches
from vcbatch.scheduler.model.objects import Job

NODES = 10


def job(name: str) -> Job:
    return Job(f"ns/{name}", 0)


def cycle(gang: Job, stamp: object, *, answered: bool) -> tuple[bool, bool]:
    """Whether the gang was searched for in a cycle of its own, and whether it is to be tried though nothing changes."""
    searches = Searches(NODES)
    begun = searches.begin(gang, stamp)
    if begun:
        searches.end(gang, left=searches.full, answered=answered)
    return begun, searches.again(gang)


def test_a_gang_whose_search_was_answered_is_searched_for_again_when_something_changed() -> None:
    gang = job("g")
    assert cycle(gang, "before", answered=True) == (True, False)
    assert cycle(gang, "before", answered=True) == (False, False)
    assert cycle(gang, "after", answered=True) == (True, False)


def test_a_search_without_an_answer_is_repeated_a_bounded_number_of_times() -> None:
    gang = job("g")
    assert [cycle(gang, "same", answered=False) for _ in range(MOST_SEARCHES)] == [(True, True)] * MOST_SEARCHES
    assert cycle(gang, "same", answered=False) == (True, False)
    assert cycle(gang, "same", answered=False) == (False, False)


def test_a_gang_for_which_no_steps_are_left_waits_for_a_later_cycle() -> None:
    searches, gangs = Searches(NODES), [job(str(number)) for number in range(4)]
    begun = [gang for gang in gangs if searches.begin(gang, "same")]
    for gang in begun:
        searches.end(gang, left=0, answered=True)
    late = next(gang for gang in gangs if gang not in begun)
    assert searches.again(late) and not late.searches
    assert not any(searches.again(gang) for gang in begun)
    assert cycle(late, "same", answered=True) == (True, False)
