"""Admission against what Volcano's webhooks answered.

Features that this version refuses are switched on here: what is measured are the rules. Each case on which we differ is
explained by one entry of `DIFFERENCES`, which `docs/differences-admission.md` describes to users.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import jsonpatch
import pytest
import yaml

from tests.conformance import DATA
from tests.support.admission_http import answer_of, app_over, review_of
from tests.support.admission_world import World
from vcbatch.api import admission, supported
from vcbatch.api.admission import Operation, Request, Settings
from vcbatch.api.defaults import json_patch
from vcbatch.api.model import Json
from vcbatch.api.queue import Queue
from vcbatch.api.resource_groups import parse_resource_groups
from vcbatch.api.resources import CRONJOBS, HYPERNODES, JOBFLOWS, JOBS, PODGROUPS, PODS, QUEUES
from vcbatch.api.validate import QueueRules

pytestmark = pytest.mark.skipif(DATA is None, reason="the conformance data isn't beside this checkout")

RESOURCES = {resource.plural: resource for resource in (JOBS, QUEUES, PODGROUPS, CRONJOBS, JOBFLOWS, HYPERNODES, PODS)}


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Cases that we refuse and Volcano accepts, told by our message; each could not have worked."""

    name: str
    ours: str
    path: str


DIFFERENCES = (
    Difference(name="durations", path="/jobs/", ours=r"want a Go duration"),
    Difference(name="names of pods", path="/jobs/", ours=r"create pod with name \S+ validate failed"),
    Difference(name="names of tasks", path="/jobs/", ours=r"tasks\[\d+\]\.name: a lowercase RFC 1123 label"),
    Difference(name="host names", path="/jobs/", ours=r"as the plugin svc makes host names of it"),
    # Unknown keys, here of a volume, are pruned by the schema before admission sees them.
    Difference(name="unknown fields", path="/jobs/", ours=r"volumes\[\d+\]: Required value: must specify a volume"),
    Difference(
        name="embedded jobs", path="/cronjobs/", ours=r"spec\.jobTemplate\.spec|No task specified|-29000000-|policy"
    ),
    Difference(name="circles of queues", path="/queues/", ours=r"which is below it"),
)

REWORDED = (
    # (Volcano's sentence, the words of ours): said better, or with the place named.
    (
        r"json: cannot unmarshal \w+ into Go struct .*\.(\w+) of type string",
        r"must be of type string",
    ),
    (r"spec\.policies: Invalid value: (\".*\"): (invalid policy \w+)", r"Invalid value: \1: \2"),
    (
        r"spec\.task\[(\d+)\]\.metadata\.name: Invalid .*",
        r"spec.tasks[\1].name: a lowercase RFC 1123 label",
    ),
    (r"\[\]\.spec\.members\.selector\.regexMatch\.pattern: (.*)", r"\1"),
    (r"\[\]\.(spec\.members: .*)", r"\1"),
)


def world(context: Json) -> World:
    """The queues and namespaces that existed, beside the two that always do."""
    always = [{"metadata": {"name": name}, "status": {"state": "Open"}} for name in ("root", "default")]
    queues = {item["metadata"]["name"]: item for item in [*always, *(context.get("queues") or [])]}
    namespaces = {item["metadata"]["name"]: item["metadata"] for item in context.get("namespaces") or []}
    return World(
        known=[Queue.parse(item) for item in queues.values()],
        namespaces={name: metadata.get("annotations", {}) for name, metadata in namespaces.items()},
    )


def settings(context: Json) -> Settings:
    depth = context.get("maxQueueDepth") or 5
    rules = QueueRules(max_depth=depth, keep_allocated=bool(context.get("enableQueueAllocatedPodsCheck")))
    return Settings(unsupported=supported.NOTHING, queues=rules)


def request_of(path: str, review: Json) -> Request:
    asked = review["request"]
    return Request(
        resource=RESOURCES[path.split("/")[1]],
        operation=Operation(asked["operation"]),
        name=asked.get("name", ""),
        namespace=asked.get("namespace", ""),
        object=asked.get("object"),
        old=asked.get("oldObject"),
    )


def sentences(message: str) -> Iterator[str]:
    """Volcano's message without its decoration, sentence by sentence."""
    message = re.sub(r"\d+ errors? occurred:\n\t\* ", "; ", message)
    message = re.sub(r"\n\n valid events are \[.*?\], valid actions are \[.*?\]", "", message)
    message = re.sub(r"^\[(requestBody.*)\]$", r"\1", message).replace(", requestBody", "; requestBody")
    message = re.sub(r"simultaneously(?=must|spec)", "simultaneously; ", message)
    message = re.sub(r"\.\s+(?=spec\.|job |must |in |\d)", "; ", message).replace(" timeZone can't", "; timeZone can't")
    for part in re.split(r";\s*(?=[\w'\[`%])|;\s*$", message):
        stripped = part.strip(" .;")
        for theirs, ours in REWORDED:
            stripped = re.sub(rf"^{theirs}$", ours, stripped)
        if stripped:
            yield stripped


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What was said of a request, whoever said it."""

    allowed: bool
    message: str
    patch: list[Json]


Route = Callable[[str, Request, World, Settings], Awaitable[Judged]]


async def by_function(path: str, request: Request, known: World, rules: Settings) -> Judged:
    """The rules called directly."""
    if path.endswith("/mutate"):
        made = admission.mutate(request, known, rules)
        return Judged(allowed=True, message="", patch=json_patch(request.object, made))
    verdict = admission.review(request, known, rules)
    return Judged(allowed=verdict.allowed, message=verdict.message, patch=[])


async def by_service(path: str, request: Request, known: World, rules: Settings) -> Judged:
    """The rules asked by an AdmissionReview."""
    response = await answer_of(app_over(known, rules), path, review_of(request))
    message = response.get("status", {}).get("message", "")
    return Judged(allowed=response["allowed"], message=message, patch=response.get("patch", []))


routes = pytest.mark.parametrize("route", [by_function, by_service])


def unexplained(path: str, verdict: Judged, want: Json) -> str:
    """Why our verdict isn't Volcano's; empty where it is, or where the difference is known."""
    if verdict.allowed != want["allowed"]:
        if not verdict.allowed and any(
            path.startswith(known.path) and re.search(known.ours, verdict.message) for known in DIFFERENCES
        ):
            return ""
        return f"ours: {verdict.message!r}, Volcano's: {want.get('message')!r}"
    for said in sentences(want.get("message") or "") if not want["allowed"] else ():
        if said not in verdict.message:
            return f"not said: {said!r} in {verdict.message!r}"
    return ""


@cache
def requests() -> list[Json]:
    assert DATA is not None
    return [json.loads(line) for line in (DATA / "admission/requests.jsonl").read_text().splitlines()]


@cache
def requests_world() -> World:
    assert DATA is not None
    return world(json.loads((DATA / "admission/requests-context.json").read_text()))


VALIDATED = [f"/{plural}/validate" for plural in RESOURCES]


@routes
@pytest.mark.parametrize("path", VALIDATED)
async def test_random_requests_are_judged_as_by_volcano(path: str, route: Route) -> None:
    cases = [case for case in requests() if case["path"] == path]
    assert cases
    wrong = {}
    for case in cases:
        verdict = await route(path, request_of(path, case["review"]), requests_world(), settings({}))
        error = unexplained(path, verdict, case["want"])
        if error:
            wrong[case["id"]] = error
    assert wrong == {}


def without_noise(value: Any) -> Any:
    """JSON as Go's types see it: no empty strings and objects, no nulls, amounts and spans in one spelling."""
    if isinstance(value, dict):
        kept = {key: without_noise(item) for key, item in value.items() if key not in ("bogus", "creationTimestamp")}
        return {key: item for key, item in kept.items() if item not in (None, "", {}) and item != 0}
    if isinstance(value, list):
        return [without_noise(item) for item in value]
    return {"5m": "5m0s"}.get(value, value) if isinstance(value, str) else value


@routes
@pytest.mark.parametrize("path", ["/jobs/mutate", "/queues/mutate", "/podgroups/mutate"])
async def test_random_requests_get_volcanos_defaults(path: str, route: Route) -> None:
    cases = [case for case in requests() if case["path"] == path and case["want"]["allowed"]]
    assert cases
    wrong = {}
    for case in cases:
        request = request_of(path, case["review"])
        want = jsonpatch.apply_patch(request.object, case["want"].get("patch") or [])
        judged = await route(path, request, requests_world(), settings({}))
        got = jsonpatch.apply_patch(request.object, judged.patch)
        if without_noise(got) != without_noise(want):
            wrong[case["id"]] = admission_difference(got, want)
        again = await route(path, replace(request, object=got), requests_world(), settings({}))
        assert again.patch == [], "what has its defaults isn't changed"
    assert wrong == {}


def admission_difference(got: Any, want: Any) -> str:
    return json.dumps(jsonpatch.make_patch(without_noise(want), without_noise(got)).patch)


async def test_nearly_all_random_requests_are_answered_alike() -> None:
    alike = 0
    for case in requests():
        path, want = case["path"], case["want"]
        request = request_of(path, case["review"])
        judged = await by_function(path, request, requests_world(), settings({}))
        if path.endswith("/mutate"):
            theirs = jsonpatch.apply_patch(request.object, want.get("patch") or [])
            ours = jsonpatch.apply_patch(request.object, judged.patch)
            alike += want["allowed"] and without_noise(ours) == without_noise(theirs)
        else:
            said = [] if want["allowed"] else list(sentences(want.get("message") or ""))
            alike += judged.allowed == want["allowed"] and all(part in judged.message for part in said)
    assert alike >= 0.97 * len(requests()), alike


def cases_of(name: str) -> list[Json]:
    assert DATA is not None
    return [case for case in yaml.safe_load_all((DATA / f"admission/{name}.yaml").read_text()) if case]


def own_request(resource: str, obj: Json, old: Json | None = None) -> tuple[str, Request]:
    name = obj["metadata"].get("name", "")
    operation = Operation.CREATE if old is None else Operation.UPDATE
    made = Request(
        resource=RESOURCES[resource],
        operation=operation,
        name=name,
        namespace=obj["metadata"].get("namespace", ""),
        object=obj,
        old=old,
    )
    return f"/{resource}/validate", made


def request_of_case(case: Json) -> tuple[str, Request]:
    given = case["in"]
    match case["kind"]:
        case "job-create":
            return own_request("jobs", given["job"])
        case "job-update":
            return own_request("jobs", given["new"], given["old"])
        case "jobflow-validate":
            return own_request("jobflows", given["jobflow"])
        case "hypernode-validate":
            return own_request("hypernodes", given["hypernode"])
        case kind:
            path = f"/{kind.removesuffix('-validate')}s/validate"
            return path, request_of(path, given["ar"])


def want_of_case(case: Json) -> Json:
    want = case["want"]
    if "response" in want:
        answer = want["response"]
        return {"allowed": answer["allowed"], "message": answer.get("status", {}).get("message", "")}
    return {"allowed": not want.get("message"), "message": want.get("message") or ""}


UNREPRODUCIBLE = {
    ("podgroup-validate", 0): "the closed queue isn't in the recorded context",
    ("queue-validate", 6): "recorded before Volcano's cache had the queue that the context has",
}

RULES = ["job-create", "job-update", "jobflow-validate", "hypernode-validate", "podgroup-validate", "queue-validate"]


@routes
@pytest.mark.parametrize("name", RULES)
async def test_volcanos_own_cases_are_judged_alike(name: str, route: Route) -> None:
    wrong = {}
    for number, case in enumerate(cases_of(name)):
        context = case.get("context") or {}
        path, asked = request_of_case(case)
        verdict = await route(path, asked, world(context), settings(context))
        error = unexplained(path, verdict, want_of_case(case))
        if error and (name, number) not in UNREPRODUCIBLE:
            wrong[number] = error
    assert wrong == {}


def test_volcanos_own_cases_of_defaults() -> None:
    for case in cases_of("queue-mutate"):
        review = case["in"]["ar"]
        if review["request"]["operation"] not in set(Operation):
            continue
        want = jsonpatch.apply_patch(review["request"]["object"], case["want"]["response"].get("patch") or [])
        assert admission.mutate(request_of("/queues/mutate", review), World()) == want
    for case in cases_of("job-mutate-tasks"):
        _, asked = own_request("jobs", {**case["in"]["job"]})
        made = admission.mutate(asked, World())
        assert made is not None
        want_tasks = (case["want"].get("response") or {}).get("value")
        if want_tasks:
            assert without_noise(made["spec"]["tasks"]) == without_noise(want_tasks)


def test_volcanos_own_cases_of_podgroups() -> None:
    for case in cases_of("podgroup-mutate"):
        _, asked = own_request("podgroups", case["in"]["podgroup"])
        made = admission.mutate(asked, world(case.get("context") or {}))
        want = jsonpatch.apply_patch(asked.object, (case["want"].get("response") or {}).get("patch") or [])
        assert made == want


def test_volcanos_own_cases_of_pods() -> None:
    for case in cases_of("pod-validate"):
        _, asked = own_request("pods", case["in"]["pod"])
        schedulers = tuple(case["context"]["schedulerNames"])
        verdict = admission.review(asked, world(case["context"]), Settings(schedulers=schedulers))
        assert (verdict.allowed, verdict.message) == (case["want"]["allowed"], case["want"]["message"])


def as_written(group: Json) -> Json:
    """A resource group as its file has it; the case has the names of Go's fields."""
    lowered = {key[:1].lower() + key[1:]: value for key, value in group.items()}
    chosen = {key.lower(): value for key, value in lowered.pop("object", {}).items()}
    return {**lowered, "object": chosen}


def test_volcanos_own_cases_of_resource_groups() -> None:
    for case in cases_of("pod-mutate"):
        groups = [as_written(group) for group in case["context"]["config"]["ResGroupsConfig"]]
        rules = Settings(resource_groups=parse_resource_groups({"resourceGroups": groups}))
        _, asked = own_request("pods", case["in"]["pod"])
        made = admission.mutate(asked, World(), rules)
        given = {**case["in"]["pod"], "spec": case["in"]["pod"].get("spec") or {}}
        assert made == jsonpatch.apply_patch(given, case["want"]["response"])
