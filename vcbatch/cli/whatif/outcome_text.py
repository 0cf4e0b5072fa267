"""The outcome of a simulation as text: a block for each gang, in 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from vcbatch.api.messages import no_pod_group
from vcbatch.api.remedies import sentence_of
from vcbatch.cli.base.output import human
from vcbatch.scheduler.model.result import Explanation, WaitReason
from vcbatch.scheduler.simulation.outcome import Outcome, key
from vcbatch.scheduler.simulation.simulation import PERIOD

WIDTH = 80
_NAMES_SHOWN = 8
"""Maximum number of a gang's pods on one node that are listed; of more pods only the first and the last are named."""


def text_of(outcome: Outcome, *, title: str = "") -> str:
    """A summary, then each gang with its decisions and its pending reason."""
    parts = [part for part in (title, _summary(outcome)) if part]
    blocks = ["\n".join(parts), *(_gang(outcome, gang) for gang in outcome.phases)]
    blocks[1:1] = ["\n".join(_wrapped(f"a plugin failed: {failure}", indent=0, hang=2)) for failure in outcome.failures]
    strangers = [*_evictions(outcome, ""), *_strays(outcome)]
    if strangers:
        blocks.append("\n".join(["pods without a gang", *strangers]))
    return "\n\n".join(blocks) + "\n"


def _summary(outcome: Outcome) -> str:
    counts = [
        (len(outcome.binds), "bound"),
        (len(outcome.evicted), "evicted"),
        (len(outcome.pipelined), "pipelined"),
        (len(outcome.allocated), "reserved"),
    ]
    said = [f"{count} {_plural(count, 'pod')} {word}" for count, word in counts if count] or ["no changes"]
    waiting = len(outcome.reasons)
    if waiting:
        said.append(f"{waiting} {_plural(waiting, 'gang')} pending")
    rounds = len(outcome.rounds)
    return f"{rounds} {_plural(rounds, 'round')}: {', '.join(said)}"


def _gang(outcome: Outcome, gang: str) -> str:
    states = ", ".join(f"{count} {state}" for state, count in outcome.counts[gang].items()) or "no pods"
    lines = [f"{gang}  {outcome.phases[gang] or 'Pending'}  queue {outcome.queues[gang]}  {states}"]
    for nth, done in enumerate(outcome.rounds, start=1):
        at = _when(outcome, nth) if len(outcome.rounds) > 1 else ""
        bound = {key(b): b.node for b in done.binds if outcome.gangs.get(key(b)) == gang}
        lines += _places(f"bound{at}", bound)
    lines += _places("pipelined (waiting for evicted pods to terminate)", _of(outcome, outcome.pipelined, gang))
    lines += _places("reserved (waiting for the rest of the gang)", _of(outcome, outcome.allocated, gang))
    lines += _evictions(outcome, gang)
    why = outcome.reasons.get(gang)
    if why is not None:
        lines += _reason(why)
    return "\n".join(lines)


def _of(outcome: Outcome, places: Mapping[str, str], gang: str) -> dict[str, str]:
    return {pod: node for pod, node in places.items() if outcome.gangs.get(pod) == gang}


def _places(title: str, places: Mapping[str, str]) -> Iterator[str]:
    if not places:
        return
    yield f"  {title}:"
    by_node: dict[str, list[str]] = {}
    for pod, node in places.items():
        by_node.setdefault(node, []).append(pod.partition("/")[2])
    width = min(max(map(len, by_node)), 30)
    for node, pods in sorted(by_node.items()):
        yield from _wrapped(f"{node:<{width}}  {_names(pods)}", indent=4, hang=4 + width + 2)


def _names(pods: list[str]) -> str:
    if len(pods) <= _NAMES_SHOWN:
        return " ".join(pods)
    return f"{len(pods)} pods, {pods[0]} to {pods[-1]}"


def _evictions(outcome: Outcome, gang: str) -> Iterator[str]:
    for nth, done in enumerate(outcome.rounds, start=1):
        at = _when(outcome, nth) if _waited(outcome, nth) else ""
        for eviction in done.evictions:
            if outcome.gangs.get(key(eviction), "") == gang:
                yield from _wrapped(
                    f"evicted{at}: {eviction.name} ({eviction.reason}: {eviction.message})", indent=2, hang=4
                )


def _when(outcome: Outcome, nth: int) -> str:
    """The round, and the time since the previous one where the simulation had to wait."""
    return f" in round {nth}{f', {human(outcome.after(nth))} later' if _waited(outcome, nth) else ''}"


def _waited(outcome: Outcome, nth: int) -> bool:
    return outcome.after(nth) > (nth - 1) * PERIOD


def _strays(outcome: Outcome) -> Iterator[str]:
    """By PodGroup, as all pods of one wait for the same reason."""
    by_group: dict[str, list[str]] = {}
    for pod, group in outcome.strays.items():
        by_group.setdefault(group, []).append(pod.partition("/")[2])
    for group, pods in by_group.items():
        yield f"  pending: {WaitReason.POD_GROUP_MISSING}"
        yield from _wrapped(f"{_names(pods)}: {no_pod_group(group)}", indent=4, hang=6)


def _reason(why: Explanation) -> Iterator[str]:
    yield from _wrapped(f"pending: {why.reason}", indent=2, hang=4)
    yield from _wrapped(why.message, indent=4, hang=4)
    for short in why.shortages:
        text = f"{short.resource}: {short.requested} requested, {short.available} available, short by {short.short_by}"
        yield from _wrapped(text, indent=4, hang=6)
    if why.remedies:
        yield from _wrapped(f"would start if you: {'; '.join(map(sentence_of, why.remedies))}", indent=4, hang=6)
    if why.position > 1:
        yield from _wrapped(
            f"position {why.position} in queue {why.queue}, behind {', '.join(why.ahead)}",
            indent=4,
            hang=6,
        )


def _wrapped(text: str, *, indent: int, hang: int) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * hang,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _plural(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"
