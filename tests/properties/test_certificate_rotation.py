"""Certificates over years: whatever replicas do, lose and forget, no API server meets a leaf that it can't trust."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime, timedelta
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.fakes.api import FakeApi
from tests.support.examples import examples
from tests.support.virtual_time import EPOCH
from tests.unit.webhooks.certificate_world import NAMESPACE, SECRET, Replica, SetClock, bundles, cluster, held, trusts
from vcbatch.api.resources import SECRETS
from vcbatch.interfaces.api import ApiError
from webhooks.certificates import rotation
from webhooks.certificates.rotation import AUTHORITY_LIFE, LEAF_LIFE, SETTLING, Authority, Held, Leaf, Span, decide
from webhooks.certificates.trust import TrustError

NAMES = frozenset({"s"})
LAG = timedelta(minutes=1)
"""How long an API server may go on with configurations as they were."""


def span(begins: timedelta, life: timedelta) -> Span:
    return Span(begins=EPOCH + begins, ends=EPOCH + begins + life)


moments = st.integers(-800, 800).map(lambda days: timedelta(days=days))
lives = st.integers(1, 800).map(lambda days: timedelta(days=days))
authorities = st.builds(
    lambda name, begins, life: Authority(fingerprint=name, span=span(begins, life)),
    st.sampled_from("abcdef"), moments, lives,
)  # fmt: skip
leaves = st.builds(
    lambda issuer, begins, life, names: Leaf(issuer=issuer, span=span(begins, life), names=frozenset(names)),
    st.sampled_from("abcdefz"), moments, lives, st.sets(st.sampled_from("st")),
)  # fmt: skip
holdings = st.builds(
    lambda held_by, signs, leaf: Held(authorities=held_by, signs=signs, leaf=leaf),
    st.lists(authorities, max_size=6, unique_by=lambda one: one.fingerprint), st.booleans(), st.none() | leaves,
)  # fmt: skip


def after(held: Held, plan: rotation.Plan, now: datetime) -> Held:
    """What there is once a plan was carried out."""
    kept = [one for one in held.authorities if one.fingerprint in plan.keep]
    if plan.authority:
        kept.insert(
            0, Authority(fingerprint="new", span=Span(begins=now - rotation.BACKDATED, ends=now + AUTHORITY_LIFE))
        )
    leaf = held.leaf
    if plan.leaf:
        ends = min(now + LEAF_LIFE, kept[0].span.ends)
        leaf = Leaf(issuer=kept[0].fingerprint, span=Span(begins=now - rotation.BACKDATED, ends=ends), names=NAMES)
    return Held(authorities=kept, signs=True, leaf=leaf)


@settings(max_examples=examples(300))
@given(held=holdings, trusted=st.booleans())
def test_from_whatever_is_there_one_step_leads_to_what_serves(held: Held, trusted: bool) -> None:
    plan = decide(held, now=EPOCH, names=NAMES, trusted=lambda _: trusted)
    then = after(held, plan, EPOCH)
    leaf = then.leaf
    assert leaf is not None and leaf.span.holds(EPOCH) and leaf.names >= NAMES
    assert leaf.issuer in {one.fingerprint for one in then.authorities}
    assert 1 <= len(then.authorities) <= max(rotation.MOST_AUTHORITIES, len(held.authorities))
    assert all(one.span.ends > EPOCH for one in then.authorities)


@settings(max_examples=examples(300))
@given(held=holdings, trusted=st.booleans())
def test_what_was_done_isnt_done_again(held: Held, trusted: bool) -> None:
    """Of two replicas that look at the same moment, or of one that crashed after its write, none writes again."""
    then = after(held, decide(held, now=EPOCH, names=NAMES, trusted=lambda _: trusted), EPOCH)
    again = decide(then, now=EPOCH, names=NAMES, trusted=lambda _: trusted)
    assert not again.authority
    assert not again.leaf
    assert list(again.keep) == [one.fingerprint for one in then.authorities]


@settings(max_examples=examples(300))
@given(held=holdings, trusted=st.booleans())
def test_a_leaf_that_serves_is_only_replaced_by_one_that_is_trusted(held: Held, trusted: bool) -> None:
    plan = decide(held, now=EPOCH, names=NAMES, trusted=lambda _: trusted)
    leaf = held.leaf
    if not plan.leaf or leaf is None or not leaf.span.holds(EPOCH) or not leaf.names >= NAMES:
        return
    alive = [one for one in held.authorities if one.span.ends > EPOCH]
    if leaf.issuer not in [one.fingerprint for one in alive[: rotation.MOST_AUTHORITIES - 1]]:
        return
    assert not plan.authority
    assert trusted or leaf.issuer == alive[0].fingerprint


class Faulty:
    """The API server, which fails now and then: before it did what was asked, or after."""

    def __init__(self, api: FakeApi) -> None:
        self._api = api
        self.errors: list[str] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._api, name)

        async def call(*args: Any, **more: Any) -> Any:
            error = self.errors.pop(0) if self.errors else "none"
            if error == "before":
                raise ApiError(0, "", "no answer")
            result = await method(*args, **more)
            if error == "after":
                raise ApiError(0, "", "no answer")
            return result

        return call


class Cluster:
    """Replicas over time, and API servers that hear of changes late."""

    def __init__(self, count: int) -> None:
        self.api = cluster()
        self.clock = SetClock()
        self.faulty = Faulty(self.api)
        self.replicas = [self.fresh() for _ in range(count)]
        self.history: list[tuple[datetime, set[bytes]]] = []

    def fresh(self) -> Replica:
        return Replica(api=self.faulty, clock=self.clock)

    async def begin(self) -> None:
        await self.everybody()
        self.history.clear()
        self.note()

    async def reconcile(self, which: int, errors: list[str]) -> None:
        replica = self.replicas[which % len(self.replicas)]
        await replica.hear()
        self.faulty.errors = list(errors)
        with contextlib.suppress(ApiError, TrustError):
            await replica.managed.reconcile()
        self.faulty.errors = []
        self.note()

    async def everybody(self) -> None:
        for which in range(len(self.replicas)):
            await self.reconcile(which, [])

    async def leap(self, days: int) -> None:
        """Replicas look every few seconds; what matters is that they did at its end."""
        self.clock.at += timedelta(days=days)
        await self.everybody()
        self.clock.at += SETTLING + timedelta(seconds=1)
        await self.everybody()

    def note(self) -> None:
        self.history.append((self.clock.at, bundles(self.api)))

    def in_force(self) -> set[bytes]:
        """Every bundle by which some API server may judge now."""
        since = self.clock.at - LAG
        known = [reported for at, reported in self.history if at <= since][-1:]
        return set[bytes]().union(*known, *(reported for at, reported in self.history if at > since))

    def check(self) -> None:
        for replica in self.replicas:
            for bundle in self.in_force() if replica.context.loaded is not None else ():
                assert trusts(bundle, replica.shown, self.clock.at), held(self.api)


errors = st.lists(st.sampled_from(["none", "none", "none", "before", "after"]), max_size=14)
steps = st.one_of(
    st.tuples(st.just("look"), st.integers(0, 2), errors),
    st.tuples(st.just("wait"), st.integers(1, 600), st.just([])),
    st.tuples(st.just("leap"), st.integers(1, 20), st.just([])),
    st.tuples(st.just("restart"), st.integers(0, 2), errors),
)


async def lived_through(count: int, life: list[tuple[str, int, list[str]]], *, forced: bool) -> None:
    world = Cluster(count)
    await world.begin()
    world.check()
    for number, (what, amount, spoiled) in enumerate(life):
        if forced and number in (len(life) // 3, 2 * len(life) // 3):
            await world.everybody()  # somebody has to know whom to go on trusting
            world.api.objects.pop((SECRETS, NAMESPACE, SECRET), None)
            await world.everybody()
        elif what == "look":
            await world.reconcile(amount, spoiled)
        elif what == "wait":
            world.clock.at += timedelta(seconds=amount)
        elif what == "leap":
            await world.leap(amount)
        else:
            world.replicas[amount % count] = world.fresh()
            await world.reconcile(amount, spoiled)
        world.check()


@settings(max_examples=examples(25), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(count=st.integers(1, 3), life=st.lists(steps, min_size=30, max_size=60), forced=st.booleans())
def test_no_api_server_ever_meets_a_leaf_that_it_cant_trust(
    count: int, life: list[tuple[str, int, list[str]]], forced: bool
) -> None:
    asyncio.run(lived_through(count, life, forced=forced))


def test_years_go_by() -> None:
    """Long enough for several authorities, which random lives seldom are."""
    asyncio.run(lived_through(2, [("leap", 14, [])] * 80, forced=False))
