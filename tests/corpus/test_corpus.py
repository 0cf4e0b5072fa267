"""The corpus asked of the rules and of the service; `tests/cluster/test_corpus.py` asks a real API server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.corpus.corpus import RESOURCES, Case, bases, cases, rules, world
from tests.support.admission_http import answer_of, app_over, review_of
from vcbatch.api import admission, supported
from vcbatch.api.admission import Operation, Settings
from vcbatch.api.defaults import json_patch
from vcbatch.api.model import Json
from webhooks.paths import PATHS

SETTINGS = Settings(unsupported=supported.NOTHING)
WORLD = world()

every_case = pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)


def test_the_corpus_is_large_and_names_every_rule() -> None:
    assert len(cases()) >= 400
    reported = {case.rule for case in cases()}
    assert reported == set(rules()), "every rule has cases, and every case a rule"
    assert len({case.name for case in cases()}) == len(cases())


def test_every_rule_refuses_or_fills_in_or_warns_somewhere() -> None:
    for name in rules():
        of_rule = [case for case in cases() if case.rule == name]
        assert any(case.says or case.becomes or case.warns or case.by_schema for case in of_rule), name


@pytest.mark.parametrize("name", bases())
def test_what_cases_start_from_can_work(name: str) -> None:
    base = bases()[name]
    known = next(case.request for case in cases() if case.request.resource.plural == base["resource"])
    metadata = base["object"]["metadata"]
    request = replace(known, operation=Operation.CREATE, object=base["object"], old=None, name=metadata["name"],
                      namespace=metadata.get("namespace", ""))  # fmt: skip
    assert admission.mutate(request, WORLD, SETTINGS) == base["object"]
    verdict = admission.review(request, WORLD, SETTINGS)
    assert (verdict.message, [*admission.mutation_warnings(request, base["object"]), *verdict.warnings]) == ("", [])


@every_case
def test_the_rules_say_it(case: Case) -> None:
    filled = admission.mutate(case.request, WORLD, SETTINGS)
    if case.request.operation is not Operation.DELETE:
        assert filled == case.filled
        assert admission.mutate(replace(case.request, object=filled), WORLD, SETTINGS) == filled
    verdict = admission.review(replace(case.request, object=filled), WORLD, SETTINGS)
    written = () if case.says else admission.mutation_warnings(case.request, filled)
    assert (verdict.message, (*written, *verdict.warnings)) == (case.says, case.warns)
    assert all(error.field for error in verdict.errors) or case.by_schema, "a fault says where"


@pytest.mark.parametrize("plural", RESOURCES)
async def test_the_service_says_it(plural: str) -> None:
    app = app_over(WORLD, SETTINGS)
    for case in cases():
        if case.request.resource.plural == plural:
            await asked_of(app, case)


async def asked_of(app: Any, case: Case) -> None:
    request, plural = case.request, case.request.resource.plural
    filled = case.filled if request.object is not None else None
    path = PATHS.get(f"/{plural}/mutate")
    patch: list[Json] = []
    warnings: list[str] = []
    if path is not None and request.operation in path.operations:
        answer = await answer_of(app, path.url, review_of(request))
        assert answer["allowed"], case.name
        patch, warnings = answer.get("patch", []), answer.get("warnings", [])
    assert patch == json_patch(request.object, filled), case.name
    path = PATHS[f"/{plural}/validate"]
    if request.operation in path.operations:
        answer = await answer_of(app, path.url, review_of(replace(request, object=filled)))
        assert answer["allowed"] is not bool(case.says), case.name
        assert answer.get("status", {}).get("message", "") == case.says, case.name
        if answer["allowed"]:
            assert (*warnings, *answer.get("warnings", ())) == case.warns, case.name
