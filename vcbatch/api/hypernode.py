"""The HyperNode (`topology.volcano.sh/v1alpha1`, cluster-scoped): a network topology domain."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from vcbatch.api.model import Json, Model, Object


class MemberType(StrEnum):
    NODE = "Node"
    HYPERNODE = "HyperNode"


class ExactMatch(Model):
    name: str = ""


class RegexMatch(Model):
    """An unanchored RE2 pattern."""

    pattern: str = ""


class MemberSelector(Model):
    """Exactly one of the three fields is set. `label_match` is for nodes only, and selects nothing when empty."""

    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: Json | None = None


class Member(Model):
    type: str = ""
    selector: MemberSelector = Field(default_factory=MemberSelector)


class HyperNodeSpec(Model):
    """A lower `tier` means a network with higher bandwidth and lower latency inside."""

    tier: int = 0
    tier_name: str = ""
    members: list[Member] = Field(default_factory=list[Member])


class HyperNodeStatus(Model):
    conditions: list[Json] = Field(default_factory=list[Json])
    node_count: int = 0


class HyperNode(Object):
    spec: HyperNodeSpec = Field(default_factory=HyperNodeSpec)
    status: HyperNodeStatus = Field(default_factory=HyperNodeStatus)
