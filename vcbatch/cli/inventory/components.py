"""The replacement of each of Volcano's components, or that there is none. docs/migrate-from-volcano.md has the same
table; a test compares the two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vcbatch.cli.inventory.model import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Successor:
    """`replaced`: whether vcbatch has the function of the component. `keep`: whether it may run beside vcbatch."""

    component: str
    replaced: bool
    keep: bool
    by: str


SUCCESSORS: Final = {
    Role.SCHEDULER: Successor(
        component="vc-scheduler", replaced=True, keep=False, by="`vcbatch scheduler`, with the same configuration"
    ),
    Role.CONTROLLERS: Successor(
        component="vc-controller-manager", replaced=True, keep=False, by="`vcbatch controllers`"
    ),
    Role.ADMISSION: Successor(
        component="vc-webhook-manager", replaced=True, keep=False, by="`vcbatch webhooks`, or admission policies"
    ),
    Role.HYPERNODES: Successor(
        component="vc-hypernode-controller-manager",
        replaced=True,
        keep=False,
        by="`vcbatch controllers --controller-conf` for label discovery; none for UFM discovery",
    ),
    Role.AGENT_SCHEDULER: Successor(
        component="vc-agent-scheduler",
        replaced=False,
        keep=True,
        by="none: it schedules pods of its own schedulerName; assign it a NodeShard",
    ),
    Role.AGENT: Successor(
        component="vc-agent",
        replaced=False,
        keep=True,
        by="none: the agent keeps handling oversubscription, QoS and network isolation",
    ),
    Role.DASHBOARD: Successor(
        component="vc-dashboard",
        replaced=False,
        keep=True,
        by="none: it works with vcbatch",
    ),
    Role.VGPU: Successor(
        component="volcano-vgpu-device-plugin",
        replaced=False,
        keep=True,
        by="none: keep it; scheduler plugin `deviceshare` assigns its vGPUs",
    ),
    Role.GPU: Successor(
        component="volcano-device-plugin",
        replaced=False,
        keep=True,
        by="none: keep it; scheduler plugin `deviceshare` assigns its shares",
    ),
    Role.DESCHEDULER: Successor(
        component="vc-descheduler",
        replaced=False,
        keep=True,
        by="none: it works with vcbatch; the action `shuffle` does part of it",
    ),
    Role.GLOBAL: Successor(
        component="volcano-global",
        replaced=False,
        keep=True,
        by="none: it distributes jobs over Karmada clusters, and doesn't require Volcano in member clusters",
    ),
    Role.TOPOLOGY: Successor(
        component="numatopo (resource exporter)",
        replaced=False,
        keep=True,
        by="none: keep it; scheduler plugin `numa-aware` uses its Numatopologies",
    ),
}
