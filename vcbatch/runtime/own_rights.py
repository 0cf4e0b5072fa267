"""Checks every few seconds with the API server that the program's account still has the permissions it needs.

One SelfSubjectRulesReview returns all rules that RBAC knows. Where an authorizer can't list its rules (webhooks of
cloud providers), the permissions that the rules lack are checked one by one (SelfSubjectAccessReview). Every account
may send these reviews for itself (`system:basic-user`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from vcbatch.api.loose import Json, listed, part
from vcbatch.api.program_rights import Right, lacking
from vcbatch.api.resources import ACCESS_REVIEWS, Resource
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.interfaces.clock import Clock

log = logging.getLogger(__name__)

REVIEW_SECONDS: Final = 15.0
UNANSWERED_SECONDS: Final = 40.0
_MOST_SINGLE: Final = 32
"""Permissions that are checked one by one in a review; the others are checked in the next ones."""
_MOST_NAMED: Final = 5
_NOT_YET: Final = "not reviewed yet"

RULES_REVIEWS: Final = Resource(
    group="authorization.k8s.io", version="v1", plural="selfsubjectrulesreviews", kind="SelfSubjectRulesReview",
    namespaced=False,
)  # fmt: skip


class OwnRights:
    """`error` is a readiness check. It also fails until the first review is answered."""

    def __init__(
        self,
        api: Api,
        needed: Callable[[], Sequence[Right]],
        *,
        namespace: str,
        clock: Clock,
        unanswered: float = UNANSWERED_SECONDS,
    ) -> None:
        """`needed` is called for each review, since features can be turned on and off; permissions in a single
        namespace are needed in `namespace`. `unanswered`: the seconds for which the last answer is valid."""
        self._unanswered = unanswered
        self._api = api
        self._needed = needed
        self._namespace = namespace
        self._clock = clock
        self._error = _NOT_YET
        self._answered = clock.monotonic()
        self._unknown: dict[Right, bool] = {}  # permissions that no rule grants -> whether a single review allowed them
        self._warned = False

    def error(self) -> str:
        """Which permissions are missing, or why that isn't known; "" where none is."""
        silent = self._clock.monotonic() - self._answered
        if not self._error and silent > self._unanswered:
            return f"the server hasn't answered for {silent:.0f}s"
        return self._error

    async def run(self) -> None:
        """Review periodically, until cancelled."""
        while True:
            await self.review()
            await self._clock.sleep(REVIEW_SECONDS)

    async def review(self) -> None:
        """Review once; `error` then returns the result."""
        try:
            missing = await self._missing(self._needed())
        except ApiError as error:
            self._refused(error)
            return
        self._answered = self._clock.monotonic()
        self._say(_named(missing))

    async def _missing(self, needed: Sequence[Right]) -> Sequence[Right]:
        body: Json = {"apiVersion": RULES_REVIEWS.api_version, "kind": RULES_REVIEWS.kind}
        status = part(await self._api.create(RULES_REVIEWS, {**body, "spec": {"namespace": self._namespace}}), "status")
        missing = lacking(needed, listed(status, "resourceRules"))
        if not missing or status.get("incomplete") is not True:
            self._unknown.clear()
            return missing
        return await self._one_by_one(missing)

    async def _one_by_one(self, rights: Sequence[Right]) -> Sequence[Right]:
        """Those of them that aren't allowed. Each is checked again only after all others were."""
        self._unknown = {right: allowed for right, allowed in self._unknown.items() if right in rights}
        new = [right for right in rights if right not in self._unknown]
        for right in [*new, *self._unknown][:_MOST_SINGLE]:
            self._unknown.pop(right, None)  # moved to the end of the order
            self._unknown[right] = await self._allowed(right)
        return [right for right, allowed in self._unknown.items() if not allowed]

    async def _allowed(self, right: Right) -> bool:
        resource, _, subresource = right.resource.partition("/")
        asked = {"group": right.group, "resource": resource, "subresource": subresource, "verb": right.verb}
        asked |= {"name": right.name, "namespace": self._namespace if right.name or _in_role(right) else ""}
        body: Json = {"apiVersion": ACCESS_REVIEWS.api_version, "kind": ACCESS_REVIEWS.kind}
        answer = await self._api.create(ACCESS_REVIEWS, {**body, "spec": {"resourceAttributes": asked}})
        return part(answer, "status").get("allowed") is True

    def _refused(self, error: ApiError) -> None:
        if error.code == 401:
            self._say("the server refuses the credentials (401)")
        elif error.code == 403:
            # A cluster without `system:basic-user`; a missing permission then causes an error where it is used.
            self._answered = self._clock.monotonic()
            if not self._warned:
                log.warning(
                    "the account can't review its own permissions; missing permissions show only when they are used"
                )
            self._warned = True
            self._say("")
        else:
            log.debug("the review of our permissions failed: %s", error.message)

    def _say(self, error: str) -> None:
        if error != self._error and (error or self._error != _NOT_YET):
            log.log(logging.ERROR if error else logging.INFO, "permissions: %s", error or "all there are again")
        self._error = error


def _named(missing: Sequence[Right]) -> str:
    if not missing:
        return ""
    more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
    return f"may not {', '.join(map(str, missing[:_MOST_NAMED]))}{more}"


def _in_role(right: Right) -> bool:
    """Whether the permission is granted by a Role in our namespace and not by a ClusterRole."""
    return right.group == "coordination.k8s.io"
