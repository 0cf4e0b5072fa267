"""Making room at scale: one gang of 64 on 5,000 full nodes with 140,000 bound pods, by each action that evicts."""

from __future__ import annotations

from tests.perf.bench_scheduler import relieve

ACTIONS = {"preempt": "2", "reclaim": "2", "gangpreempt": "2", "gangreclaim": "1"}
"""With the cpus that each waiting pod asks for, the bound ones asking for 1."""

if __name__ == "__main__":
    for action, request in ACTIONS.items():
        print(relieve(action, request=request))  # noqa: T201 - this is what it is for
    for action in ("preempt", "gangpreempt"):
        print(relieve(action, waiting=100, priority=10))  # noqa: T201 - nobody can be helped
