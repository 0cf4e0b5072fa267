"""`make fuzz-admission`: the admission service and whatever may be posted to it.

Objects of the corpora (ours, and the recorded requests where they are) are mutated at random from a seed; then come the
objects made to cost much. Each is answered in this process as over HTTP: never a 500 or an unjudged pod, never more
than a second of CPU time, never more than 200 MB. What breaks one of these is kept in a file, and the end is 1.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import click

from tests.conformance import DATA
from tests.corpus.corpus import cases, world
from tests.fuzz.mutations import mutated
from tests.support.admission_http import app_over, review_of
from tests.support.asgi import JSON_TYPE, ask
from tests.support.hostile_reviews import hostile
from vcbatch.api import supported
from vcbatch.api.admission import Settings
from vcbatch.api.model import Json
from webhooks import service
from webhooks.paths import PATHS

SECONDS, BYTES = 1.0, 200 * 10**6
_CODES = (200, 400, 413)
_PATIENCE = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one input. `grown`: by how much the most memory that was used grew, in bytes."""

    seconds: float
    grown: int
    path: str
    what: str


@dataclass(kw_only=True)
class Report:
    """What came of all inputs."""

    codes: Counter[str] = field(default_factory=Counter)
    costs: list[Cost] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def note(self, cost: Cost) -> None:
        self.costs.append(cost)
        if len(self.costs) > 1000:
            self.costs = self.dearest(100)

    def dearest(self, count: int) -> list[Cost]:
        return sorted(self.costs, key=lambda cost: -cost.seconds)[:count]


def reviews() -> dict[str, list[Json]]:
    """Path to the good reviews that are mutated for it."""
    found: dict[str, list[Json]] = {path: [] for path in PATHS}
    for case in cases():
        for path, serves in PATHS.items():
            if serves.resource == case.request.resource and case.request.operation in serves.operations:
                found[path].append(review_of(case.request))
    if DATA is not None:
        for line in (DATA / "admission/requests.jsonl").read_text().splitlines():
            recorded = json.loads(line)
            if recorded["path"] in found:
                found[recorded["path"]].append(recorded["review"])
    return found


class Fuzz:
    """Posts bodies, one after the other, and judges the answers."""

    def __init__(self, keep: Path) -> None:
        self.report = Report()
        self._app = app_over(world(), Settings(unsupported=supported.NOTHING))
        self._keep = keep

    async def post(self, path: str, what: str, body: bytes) -> None:
        before, began = most_memory(), time.process_time()
        error = ""
        try:
            reply = await ask(self._app, "POST", path, body, headers=JSON_TYPE)
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
        else:
            self.report.codes[str(reply.code)] += 1
            error = "" if reply.code in _CODES else f"answered {reply.code}"
            if reply.code == 200:
                error = _wrong(reply.json["response"])
        cost = Cost(seconds=time.process_time() - began, grown=most_memory() - before, path=path, what=what)
        self.report.note(cost)
        if cost.seconds > SECONDS:
            error = error or f"took {cost.seconds:.2f} s"
        if cost.grown > BYTES:
            error = error or f"took {cost.grown / 1e6:.0f} MB"
        if error:
            kept = self._keep / f"fuzz-{len(self.report.errors)}.json"
            kept.write_bytes(body)
            self.report.errors.append(f"{path} {what}: {error[:500]} ({kept})")


def _wrong(answered: Json) -> str:
    code = answered.get("status", {}).get("code")
    if code is not None:
        return f"refused with {code}: {answered['status']['message']}"
    if not answered["allowed"] and not answered["status"]["message"]:
        return "refused without a word"
    return "an unjudged pod" if any("unjudged" in warning for warning in answered.get("warnings", ())) else ""


def most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


async def run(inputs: int, seed: int, keep: Path) -> Report:
    """That many mutated inputs, and every hostile one."""
    service.TIME_LIMIT = _PATIENCE  # type: ignore[misc]  # what counts here is CPU time, however busy the machine is
    random, fuzz, good = Random(seed), Fuzz(keep), reviews()
    paths = sorted(path for path, reviews_of in good.items() if reviews_of)
    weights = [len(good[path]) for path in paths]
    everything = [review for each in good.values() for review in each]
    for number in range(inputs):
        (path,) = random.choices(paths, weights)
        body = mutated(random, random.choice(good[path]), random.choice((good[path], good[path], everything)))
        await fuzz.post(path, f"input {number} of seed {seed}", body)
    for path, what, body in hostile() if inputs >= 1000 else ():
        await fuzz.post(path, what, body)
    return fuzz.report


@click.command()
@click.option("--inputs", default=100_000, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--keep", default=".", type=click.Path(file_okay=False, path_type=Path), help="Where to put what fails.")
def main(inputs: int, seed: int, keep: Path) -> None:
    """Post INPUTS mutated reviews and the hostile ones."""
    began = time.perf_counter()
    report = asyncio.run(run(inputs, seed, keep))
    click.echo(f"{sum(report.codes.values()):,} answers in {time.perf_counter() - began:.0f} s: {dict(report.codes)}")
    click.echo(f"most memory {most_memory() / 1e6:.0f} MB; the dearest by CPU time:")
    for cost in report.dearest(8):
        click.echo(f"  {cost.seconds:.2f} s, {cost.grown / 1e6:.0f} MB more: {cost.path} {cost.what}")
    for error in report.errors[:50]:
        click.echo(error, err=True)
    sys.exit(bool(report.errors))


if __name__ == "__main__":
    main()
