"""A program knows within seconds that it may not do its work, and that it may again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.fakes.api import FakeApi
from tests.support.virtual_time import VirtualClock, run
from vcbatch.api.program_rights import Right
from vcbatch.interfaces.api import ApiError, Json
from vcbatch.runtime.own_rights import REVIEW_SECONDS, RULES_REVIEWS, OwnRights

PODS, NODES = Right("", "pods", "list"), Right("", "nodes", "watch")
LEASE = Right("coordination.k8s.io", "leases", "get", "mine")
RULE_OF_PODS: Json = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
RULE_OF_NODES: Json = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["watch"]}


class Server(FakeApi):
    """Answers reviews: with `rules`, with `allowed` right by right, or with `error`."""

    def __init__(self) -> None:
        super().__init__()
        self.rules: list[Json] = [RULE_OF_PODS, RULE_OF_NODES]
        self.incomplete = False
        self.allowed: Callable[[Json], bool] = lambda _: True
        self.error: ApiError | None = None
        self.asked: list[Json] = []
        self.singles: list[Json] = []

    async def create(self, resource: Any, body: Json, *, namespace: str | None = None) -> Json:
        if self.error is not None:
            raise self.error
        if resource == RULES_REVIEWS:
            self.asked.append(body["spec"])
            return {"status": {"resourceRules": self.rules, "incomplete": self.incomplete}}
        self.singles.append(body["spec"]["resourceAttributes"])
        return {"status": {"allowed": self.allowed(body["spec"]["resourceAttributes"])}}


def reviewing(server: Server, *needed: Right, clock: VirtualClock | None = None) -> OwnRights:
    return OwnRights(server, lambda: needed or (PODS, NODES), namespace="ours", clock=clock or VirtualClock())


def test_a_program_that_may_do_everything_is_well_and_asks_one_question() -> None:
    async def main() -> None:
        server = Server()
        rights = reviewing(server)
        assert rights.error() == "not reviewed yet"
        await rights.review()
        assert (rights.error(), server.asked, server.singles) == ("", [{"namespace": "ours"}], [])

    run(main())


def test_a_right_that_is_taken_away_is_named_until_it_is_given_back() -> None:
    async def main() -> None:
        server = Server()
        rights = reviewing(server)
        await rights.review()
        server.rules = [RULE_OF_NODES]
        await rights.review()
        assert rights.error() == "may not list pods"
        server.rules = [RULE_OF_PODS, RULE_OF_NODES]
        await rights.review()
        assert rights.error() == ""

    run(main())


def test_many_missing_rights_are_counted() -> None:
    async def main() -> None:
        server = Server()
        server.rules = []
        rights = reviewing(server, *(Right("g", f"kind{number}", "get") for number in range(9)))
        await rights.review()
        assert rights.error().endswith("get kind4.g and 4 more")

    run(main())


def test_what_is_needed_is_asked_for_each_review() -> None:
    async def main() -> None:
        server, needed = Server(), [PODS]
        rights = OwnRights(server, lambda: needed, namespace="ours", clock=VirtualClock())
        await rights.review()
        needed.append(Right("", "pods", "delete"))
        await rights.review()
        assert rights.error() == "may not delete pods"

    run(main())


def test_credentials_that_are_refused_count_at_once_and_say_nothing_of_the_account() -> None:
    async def main() -> None:
        server = Server()
        rights = reviewing(server)
        await rights.review()
        server.error = ApiError(401, "Unauthorized", "token of system:serviceaccount:a:b is expired")
        await rights.review()
        assert rights.error() == "the server refuses the credentials (401)"
        server.error = None
        await rights.review()
        assert rights.error() == ""

    run(main())


def test_a_server_that_is_silent_counts_after_a_while_and_only_until_it_answers() -> None:
    async def main() -> None:
        server, clock = Server(), VirtualClock()
        rights = reviewing(server, clock=clock)
        await rights.review()
        server.error = ApiError(0, "ConnectionLost", "refused")
        await clock.sleep(REVIEW_SECONDS)
        await rights.review()
        assert rights.error() == ""
        await clock.sleep(45)
        await rights.review()
        assert rights.error() == "the server hasn't answered for 60s"
        server.error = None
        await rights.review()
        assert rights.error() == ""

    run(main())


def test_how_long_a_server_may_be_silent_is_a_choice() -> None:
    async def main() -> None:
        server, clock = Server(), VirtualClock()
        rights = OwnRights(server, lambda: (PODS,), namespace="ours", clock=clock, unanswered=120)
        await rights.review()
        await clock.sleep(115)
        assert rights.error() == ""
        await clock.sleep(10)
        assert rights.error() == "the server hasn't answered for 125s"

    run(main())


def test_an_account_that_may_not_review_itself_is_not_held_against_it() -> None:
    async def main() -> None:
        server, clock = Server(), VirtualClock()
        rights = reviewing(server, clock=clock)
        server.error = ApiError(403, "Forbidden", "cannot create selfsubjectrulesreviews")
        for _ in range(5):
            await rights.review()
            assert rights.error() == ""
            await clock.sleep(REVIEW_SECONDS)

    run(main())


def test_where_rules_are_incomplete_what_they_lack_is_asked_one_by_one() -> None:
    async def main() -> None:
        server = Server()
        server.rules, server.incomplete = [RULE_OF_PODS], True
        rights = reviewing(server, PODS, NODES, LEASE)
        await rights.review()
        assert rights.error() == ""
        assert [(each["resource"], each["verb"], each["name"], each["namespace"]) for each in server.singles] == [
            ("nodes", "watch", "", ""),
            ("leases", "get", "mine", "ours"),
        ]
        server.allowed = lambda asked: asked["resource"] != "nodes"
        await rights.review()
        assert rights.error() == "may not watch nodes"
        server.allowed = lambda _: True
        await rights.review()
        assert rights.error() == ""

    run(main())


def test_many_single_questions_are_spread_over_reviews_and_each_has_its_turn() -> None:
    async def main() -> None:
        server = Server()
        server.rules, server.incomplete = [], True
        needed = [Right("g", f"kind{number}", "get") for number in range(70)]
        rights = reviewing(server, *needed)
        for _ in range(3):
            before = len(server.singles)
            await rights.review()
            assert len(server.singles) - before <= 32
        assert {each["resource"] for each in server.singles} == {right.resource for right in needed}
        server.allowed = lambda asked: asked["resource"] != "kind69"
        for _ in range(3):
            await rights.review()
        assert rights.error() == "may not get kind69.g"

    run(main())
