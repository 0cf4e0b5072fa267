"""The configurations that the service writes itself: when, by whom, and what it leaves alone."""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import timedelta
from typing import Any

import pytest

from tests.fakes.api import FakeApi
from tests.unit.webhooks.certificate_world import NAMESPACE, SetClock, Watched
from vcbatch.api.model import Json
from vcbatch.api.resources import LEASES, Resource
from vcbatch.interfaces.api import ApiError
from webhooks.certificates.trust import Trust
from webhooks.configurations import MUTATING, NAMES, RULES, RULES_VERSION, VALIDATING, covers, shipped
from webhooks.kept_configurations import (
    CHECK_SECONDS,
    LEASE,
    LEASE_SECONDS,
    SETTLED_SECONDS,
    KeptConfigurations,
    RulesLease,
    rules_of,
)

SHIPPED = shipped()
BUNDLE = b"PEM"
ENCODED = base64.b64encode(BUNDLE).decode()
KINDS = {resource.kind: resource for resource in (MUTATING, VALIDATING)}
FIRST = NAMES[MUTATING][0]


class Server(FakeApi):
    """With empty configurations, as a chart makes them; none may be created."""

    def __init__(self, *, creates: bool = False, empty: bool = True) -> None:
        super().__init__()
        self.creates = creates
        for resource, names in NAMES.items():
            for name in names if empty else ():
                self.seed(resource, {"metadata": {"name": name}})

    async def create(self, resource: Resource, body: Json, *, namespace: str | None = None, **more: Any) -> Any:
        if resource in NAMES and not self.creates:
            raise ApiError(403, "Forbidden", "may not create")
        return await super().create(resource, body, namespace=namespace, **more)

    def filled(self, resource: Resource) -> list[str]:
        return [item["metadata"]["name"] for item in self.all(resource) if item.get("webhooks")]

    def stored(self, name: str = FIRST, resource: Resource = MUTATING) -> Json:
        return self.objects[resource, "", name]

    def configuration_writes(self) -> list[str]:
        return [name for _, plural, name in self.writes if plural.endswith("webhookconfigurations")]


class Replica:
    """One running service of some version, whose rules differ from those of others by a timeout."""

    def __init__(self, api: Server, clock: SetClock, name: str = "a", *, rules: int = RULES_VERSION) -> None:
        self.api, self.clock, self.rules = api, clock, rules
        self.well = True
        self.bundle = BUNDLE
        self.watched = Watched()
        self.trust = Trust(api, self.watched)  # type: ignore[arg-type]
        self.lease = RulesLease(api, namespace=NAMESPACE, identity=name, clock=clock, rules=rules)
        self.kept = KeptConfigurations(
            api, self.trust, self.lease, wanted=self.wanted, bundle=lambda: self.bundle, well=lambda: self.well,
            clock=clock, rules=rules,
        )  # fmt: skip

    def wanted(self) -> list[Json]:
        return [
            {**configuration, "webhooks": [{**configuration["webhooks"][0], "timeoutSeconds": self.rules}]}
            for configuration in SHIPPED
        ]

    async def reconcile(self) -> None:
        """Hear what is stored, and look."""
        for resource in NAMES:
            self.watched.follow(resource).replace(await self.api.list(resource))
        await self.kept.reconcile()

    async def run(self, seconds: float) -> None:
        await run(self.clock, seconds, self)


async def run(clock: SetClock, seconds: float, *replicas: Replica) -> None:
    """Time goes by, and all of them look now and then."""
    end = clock.at + timedelta(seconds=seconds)
    while clock.at < end:
        for replica in replicas:
            await replica.reconcile()
        clock.at += timedelta(seconds=CHECK_SECONDS)


def everything(api: Server) -> bool:
    return all(sorted(api.filled(resource)) == sorted(names) for resource, names in NAMES.items())


def in_force(api: Server) -> set[int]:
    """The rules that hold, by their timeouts."""
    return {item["webhooks"][0]["timeoutSeconds"] for resource in NAMES for item in api.all(resource)}


async def test_nothing_is_written_before_the_service_has_been_ready_for_a_while() -> None:
    api, clock = Server(), SetClock()
    one = Replica(api, clock)
    one.well = False
    await one.run(60)
    assert api.configuration_writes() == []
    one.well = True
    await one.run(SETTLED_SECONDS)
    assert api.configuration_writes() == []
    one.well = False
    await one.run(CHECK_SECONDS)
    one.well = True
    await one.run(SETTLED_SECONDS)
    assert api.configuration_writes() == [], "it wasn't ready in between"
    await one.run(30)
    assert everything(api)


async def test_what_is_filled_in_is_written_before_what_is_judged() -> None:
    api, clock = Server(), SetClock()
    one = Replica(api, clock)
    while not api.filled(MUTATING):
        await one.reconcile()
        assert not api.filled(VALIDATING)
        clock.at += timedelta(seconds=CHECK_SECONDS)
    assert sorted(api.filled(MUTATING)) == sorted(NAMES[MUTATING])
    await one.run(2 * CHECK_SECONDS)
    assert everything(api)


async def test_all_that_is_written_trusts_somebody() -> None:
    api, clock = Server(), SetClock()
    one = Replica(api, clock)
    one.bundle = b""
    await one.run(60)
    assert api.configuration_writes() == []
    one.bundle = BUNDLE
    await one.run(60)
    for resource in NAMES:
        for item in api.all(resource):
            (webhook,) = item["webhooks"]
            assert webhook["clientConfig"]["caBundle"] == ENCODED
            assert item["metadata"]["annotations"] == {RULES: str(RULES_VERSION)}


async def test_what_is_as_it_should_be_isnt_written_again() -> None:
    api, clock = Server(), SetClock()
    one = Replica(api, clock)
    await one.run(60)
    before = api.configuration_writes()
    for resource in NAMES:  # as an API server answers: with the defaults of what was left out
        for item in api.all(resource):
            stored = api.stored(item["metadata"]["name"], resource)
            stored["webhooks"][0].setdefault("objectSelector", {})
            stored["webhooks"][0]["clientConfig"]["caBundle"] = "bmV3ZXI="  # and whoever keeps the authorities
    await one.run(60)
    assert api.configuration_writes() == before


@pytest.mark.parametrize(
    "change",
    [
        {"webhooks": []},
        {"webhooks": [{"name": "jobs.mutate.volcano.sh", "clientConfig": {"caBundle": "dGhlaXJz"}, "rules": []}]},
        {"metadata": {"annotations": {RULES: None}}},
    ],
)
async def test_what_somebody_changes_is_changed_back(change: Json) -> None:
    api, clock = Server(), SetClock()
    one = Replica(api, clock)
    await one.run(60)
    await api.patch(MUTATING, FIRST, change)
    await one.reconcile()
    (wanted,) = (made for made in one.wanted() if made["metadata"]["name"] == FIRST)
    assert covers(api.stored()["webhooks"], wanted["webhooks"])
    assert rules_of(api.stored()) == RULES_VERSION
    given = (change.get("webhooks") or [{}])[0].get("clientConfig", {}).get("caBundle")
    authorities = {ENCODED, given} if given else {ENCODED}
    assert api.stored()["webhooks"][0]["clientConfig"]["caBundle"] in authorities, "who keeps them is another"


async def test_configurations_of_others_are_left_alone() -> None:
    api, clock = Server(), SetClock()
    other = api.seed(MUTATING, {"metadata": {"name": "of-somebody-else"}, "webhooks": []})
    await Replica(api, clock).run(60)
    assert api.stored("of-somebody-else") == other


async def test_without_the_right_nothing_is_created_and_the_rest_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    api, clock = Server(), SetClock()
    api.remove(MUTATING, FIRST)
    await Replica(api, clock).run(60)
    assert not any(name == FIRST for resource in NAMES for name in api.filled(resource))
    assert sorted([*api.filled(MUTATING), FIRST]) == sorted(NAMES[MUTATING])
    assert f"{FIRST} doesn't exist and may not be created" in caplog.text


async def test_with_the_right_they_are_created_once_and_stay_away_where_somebody_deletes_them() -> None:
    """At the end of a release the configurations go before the service does."""
    api, clock = Server(creates=True, empty=False), SetClock()
    one, other = Replica(api, clock, "a"), Replica(api, clock, "b")
    await run(clock, 60, one, other)
    assert everything(api)
    for resource, names in NAMES.items():
        for name in names:
            api.remove(resource, name)
    await run(clock, 60, one, other)
    await one.lease.release()
    await run(clock, 60, other)
    assert not any(api.all(resource) for resource in NAMES)


# Several replicas


async def test_of_equal_replicas_one_writes_and_another_goes_on_after_it() -> None:
    api, clock = Server(), SetClock()
    one, other = Replica(api, clock, "a"), Replica(api, clock, "b")
    await run(clock, 60, one, other)
    assert (one.lease.held_since is None) is not (other.lease.held_since is None)
    assert len(api.configuration_writes()) == sum(map(len, NAMES.values())), "each was written once"
    await api.patch(MUTATING, FIRST, {"webhooks": []})
    await run(clock, LEASE_SECONDS + SETTLED_SECONDS + 3 * CHECK_SECONDS, other)  # the first one died
    assert everything(api)


async def test_at_an_upgrade_the_newer_rules_hold_once_no_older_replica_is_left() -> None:
    api, clock = Server(), SetClock()
    old, older = Replica(api, clock, "a", rules=1), Replica(api, clock, "b", rules=1)
    await run(clock, 60, old, older)
    new = Replica(api, clock, "c", rules=2)
    await run(clock, 60, old, older, new)
    assert in_force(api) == {1}
    await old.lease.release()
    await run(clock, 60, new, older)  # the newer one looks first
    assert in_force(api) == {1}, "an older one couldn't serve the newer rules"
    await older.lease.release()
    await run(clock, 60, new)
    assert in_force(api) == {2}


async def test_at_a_rollback_the_older_rules_hold_before_the_older_replica_is_ready() -> None:
    api, clock = Server(), SetClock()
    new = Replica(api, clock, "a", rules=2)
    await new.run(60)
    assert in_force(api) == {2}
    old = Replica(api, clock, "b", rules=1)
    old.well = False
    await old.reconcile()
    assert not old.kept.usable.is_set(), "it doesn't serve all that is asked"
    await run(clock, 30, new, old)
    assert in_force(api) == {1}
    assert old.kept.usable.is_set()
    writes = len(api.configuration_writes())
    await run(clock, 600, new, old)
    assert len(api.configuration_writes()) == writes, "the two don't fight"
    await run(clock, 60, old)
    assert in_force(api) == {1}


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
async def test_two_versions_dont_fight_however_they_start(order: tuple[str, str]) -> None:
    api, clock = Server(), SetClock()
    found = {"a": Replica(api, clock, "a", rules=1), "b": Replica(api, clock, "b", rules=2)}
    await run(clock, 120, *(found[name] for name in order))
    assert in_force(api) == {1}
    writes = len(api.configuration_writes())
    await run(clock, 600, *(found[name] for name in reversed(order)))
    assert len(api.configuration_writes()) == writes


async def test_a_lease_that_isnt_let_to_us_keeps_nobody_from_being_ready() -> None:
    api, clock = Server(), SetClock()
    one = Replica(api, clock)

    async def refused(*_: Any, **__: Any) -> Any:
        raise ApiError(403, "Forbidden", "no leases")

    one.lease._api = type("Refusing", (), {"get": refused})()  # type: ignore[assignment]
    with pytest.raises(ApiError, match="no leases"):
        await one.reconcile()
    assert one.kept.usable.is_set()
    assert api.configuration_writes() == []


async def test_who_ends_gives_the_lease_back() -> None:
    api, clock = Server(), SetClock()
    one, other = Replica(api, clock, "a"), Replica(api, clock, "b")
    await one.reconcile()
    await one.lease.release()
    assert api.objects[LEASES, NAMESPACE, LEASE]["spec"]["holderIdentity"] == ""
    await other.reconcile()
    assert other.lease.held_since is not None


def test_the_version_of_the_rules_is_raised_with_them() -> None:
    """When this fails, raise `RULES_VERSION` and bring the digest up to date: else replicas of two versions would each
    take the other's rules for their own."""
    digest = hashlib.sha256(json.dumps(SHIPPED, sort_keys=True).encode()).hexdigest()[:16]
    assert (RULES_VERSION, digest) == (2, "d5b9b5224d84e479")
