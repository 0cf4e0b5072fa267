"""What takes the place of each of Volcano's components, or that nothing does. docs/migrate-from-volcano.md has the same
table; a test compares the two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vcbatch.cli.inventory.model import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Successor:
    """`replaced`: whether vcbatch does what the component does. `keep`: whether it may go on running beside vcbatch."""

    component: str
    replaced: bool
    keep: bool
    by: str


SUCCESSORS: Final = {
    Role.SCHEDULER: Successor(
        component="vc-scheduler", replaced=True, keep=False, by="`vcbatch scheduler`, with the same policy file"
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
        by="`vcbatch controllers --controller-conf`, for discovery by labels; discovery by UFM has no replacement",
    ),
    Role.AGENT_SCHEDULER: Successor(
        component="vc-agent-scheduler",
        replaced=False,
        keep=True,
        by="nothing: it places pods of its own schedulerName; give it a NodeShard of its own",
    ),
    Role.AGENT: Successor(
        component="vc-agent",
        replaced=False,
        keep=True,
        by="nothing: oversubscription, QoS and network isolation on nodes stay with the agent",
    ),
    Role.DASHBOARD: Successor(
        component="vc-dashboard",
        replaced=False,
        keep=True,
        by="nothing: it reads the same objects and may stay; `vcbatch` shows jobs and queues in the shell",
    ),
    Role.VGPU: Successor(
        component="volcano-vgpu-device-plugin",
        replaced=False,
        keep=True,
        by="nothing: the plugin stays, and the policy's plugin `deviceshare` assigns its vGPUs",
    ),
    Role.GPU: Successor(
        component="volcano-device-plugin",
        replaced=False,
        keep=True,
        by="nothing: the plugin stays, and the policy's plugin `deviceshare` assigns its shares",
    ),
    Role.DESCHEDULER: Successor(
        component="vc-descheduler",
        replaced=False,
        keep=True,
        by="nothing: it evicts by its own policy and may stay; the action `shuffle` does a part of it",
    ),
    Role.GLOBAL: Successor(
        component="volcano-global",
        replaced=False,
        keep=True,
        by="nothing: it distributes jobs over clusters of Karmada, and needs no Volcano in its member clusters",
    ),
    Role.TOPOLOGY: Successor(
        component="numatopo (resource exporter)",
        replaced=False,
        keep=True,
        by="nothing: it reports Numatopologies, which the policy's plugin `numa-aware` reads",
    ),
}
