"""Dependency graphs: tasks of a job, jobs of a flow."""

from __future__ import annotations

from collections.abc import Collection, Mapping


def unknown_target(edges: Mapping[str, Collection[str]]) -> tuple[str, str] | None:
    """The first (node, target) whose target is no node."""
    for node, targets in edges.items():
        for target in targets:
            if target not in edges:
                return node, target
    return None


def cycle(edges: Mapping[str, Collection[str]]) -> list[str]:
    """The nodes that can never start because they depend on each other or on such a node; empty without cycles."""
    waiting = {node: {target for target in targets if target in edges} for node, targets in edges.items()}
    waited_for_by: dict[str, list[str]] = {node: [] for node in edges}
    for node, targets in waiting.items():
        for target in targets:
            waited_for_by[target].append(node)
    ready = [node for node, targets in waiting.items() if not targets]
    while ready:
        done = ready.pop()
        del waiting[done]
        for node in waited_for_by[done]:
            waiting[node].discard(done)
            if not waiting[node]:
                ready.append(node)
    return list(waiting)
