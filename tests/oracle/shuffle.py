"""Evictions that don't depend on a pending pod: `shuffle` with the plugins tdm, pdb and cdp."""

from __future__ import annotations

from collections.abc import Callable

from tests.oracle.gang_eviction import EvictionOracle
from tests.oracle.model import Job, Task
from tests.oracle.worlds import NOW

ZONE = "volcano.sh/revocable-zone"
WINDOW = "tdm.revocable-zone."


class ShuffleOracle(EvictionOracle):
    """One cycle of a policy with any evicting action."""

    def _known_actions(self) -> dict[str, Callable[[], None]]:
        return super()._known_actions() | {"shuffle": self._shuffle}

    def _shuffle(self) -> None:
        victims = [task for job in self.jobs.values() for task in self._unwanted(job)]
        if "pdb" in self.plugins:
            victims = self._within_budgets(victims)
        if "cdp" in self.plugins:
            victims = self._not_cooling(victims)
        for victim in victims:
            assert victim.job is not None
            self._evict(victim, victim.job)

    def _unwanted(self, job: Job) -> list[Task]:
        """The tasks on nodes whose revocable zone isn't active now, the lowest priority first, as many of the gang as
        may be evicted at once."""
        closed = {n.name for n in self.nodes if ZONE in n.labels and not self._lent_now(n.labels[ZONE])}
        here = [t for t in job.tasks if t.status == "Running" and t.node in closed and self._preemptable(t)]
        return sorted(here, key=lambda t: (t.priority, t.uid))[: self._at_once(job)]

    def _lent_now(self, zone: str) -> bool:
        window = self.plugins["tdm"].get(WINDOW + zone, "")
        start, end = window.split("-")
        return start <= NOW.strftime("%H:%M") < end

    def _at_once(self, job: Job) -> int:
        notes = self.groups[job.key]["metadata"].get("annotations") or {}
        running = job.count("Running")
        if "volcano.sh/jdb-max-unavailable" in notes:
            away = len(job.tasks) - job.count("Succeeded", "Failed") - running
            return max(0, int(notes["volcano.sh/jdb-max-unavailable"]) - away)
        if "volcano.sh/jdb-min-available" in notes:
            return max(0, running - int(notes["volcano.sh/jdb-min-available"]))
        return 1
