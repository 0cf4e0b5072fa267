"""The list of a template's jobs, whenever the controllers die and however late they hear of things."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from tests.support.examples import examples
from tests.support.lives import NAMESPACE, Stage, assert_alike, assert_deaths_change_nothing, misfortunes, report
from vcbatch.api.names import CREATED_BY_JOB_TEMPLATE
from vcbatch.api.resources import JOBS, JOBTEMPLATES


def _job(stage: Stage, name: str, template: str) -> None:
    """One that is over, so that only its template has anything to do with it."""
    metadata = {"annotations": {CREATED_BY_JOB_TEMPLATE: f"{NAMESPACE}.{template}"}}
    status = {"state": {"phase": "Completed"}, "minAvailable": 1}
    spec = {"minAvailable": 1, "queue": "default", "tasks": [{"name": "w", "replicas": 1, "template": {"spec": {}}}]}
    stage.put(JOBS, name, metadata=metadata, spec=spec, status=status)


def _listed(stage: Stage, template: str) -> list[str]:
    return (stage.get(JOBTEMPLATES, template).get("status") or {}).get("jobDependsOnList", [])


async def _jobs_come_and_go(stage: Stage) -> None:
    stage.put(JOBTEMPLATES, "t", spec={"tasks": []})
    _job(stage, "a", "t")
    _job(stage, "early", "late")
    await stage.rest()
    assert _listed(stage, "t") == ["a"]
    for name in ("b", "c"):
        _job(stage, name, "t")
    stage.put(JOBTEMPLATES, "late", spec={"tasks": []})
    await stage.rest()
    assert (_listed(stage, "t"), _listed(stage, "late")) == (["a", "b", "c"], ["early"])
    stage.remove(JOBS, "b")
    await stage.rest()
    assert _listed(stage, "t") == ["a", "c"]
    stage.remove(JOBTEMPLATES, "t")
    await stage.rest()
    stage.put(JOBTEMPLATES, "t", spec={"tasks": []})
    for name in ("a", "early"):
        stage.remove(JOBS, name)
    await stage.rest()
    assert (_listed(stage, "t"), _listed(stage, "late")) == (["c"], [])


def test_dying_at_any_write_changes_nothing() -> None:
    assert_deaths_change_nothing(_jobs_come_and_go, least=6)


def test_neither_does_late_news_and_dying_often() -> None:
    whole = report(_jobs_come_and_go)

    @settings(max_examples=examples(25))
    @given(misfortunes(JOBS, JOBTEMPLATES))
    def check(misfortune: Any) -> None:
        assert_alike(report(_jobs_come_and_go, **misfortune), whole, str(misfortune))

    check()
