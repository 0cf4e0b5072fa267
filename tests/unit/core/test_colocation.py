"""Which ColocationConfiguration a pod follows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vcbatch.api.colocation import ColocationConfiguration
from vcbatch.api.meta import ObjectMeta
from vcbatch.api.names import COLOCATION, COLOCATION_NAME
from vcbatch.core.colocation import ColocationView, decide

Json = dict[str, Any]


def configuration(name: str, created: str, **spec: Any) -> ColocationConfiguration:
    return ColocationConfiguration.parse(
        {"metadata": {"name": name, "creationTimestamp": f"2026-11-21T12:00:{created}Z"}, "spec": spec}
    )


def written(*configurations: ColocationConfiguration, **annotations: str) -> Json | None:
    """What the decision changes of the pod's annotations."""
    held = {key.replace("_", "-"): value for key, value in annotations.items()}
    notes = {f"volcano.sh/{key}": value for key, value in held.items()}
    pod = ObjectMeta(name="p", namespace="ns", uid="p-uid", labels={"app": "web"}, annotations=notes)
    marks = decide(ColocationView(pod=pod, configurations=configurations)).marks
    assert all(mark.ref.uid == "p-uid" for mark in marks)
    return marks[0].patch["metadata"]["annotations"] if marks else None


WEB = {"matchLabels": {"app": "web"}}


def test_the_newest_that_selects_it_is_followed() -> None:
    found = written(
        configuration("old", "01", selector=WEB, memoryQos={"highRatio": 90}),
        configuration("new", "02", selector={}, memoryQos={"lowRatio": 30}),
        configuration("newest", "03", selector={"matchLabels": {"app": "db"}}),
        configuration("none", "04"),
    )
    assert found is not None
    assert found[COLOCATION_NAME] == "new"
    assert json.loads(found[COLOCATION]) == {"memoryQos": {"highRatio": 100, "lowRatio": 30, "minRatio": 0}}


def test_of_the_same_age_all_looks_take_the_same() -> None:
    pair = [configuration(name, "01", selector=WEB) for name in ("a", "b")]
    assert written(*pair) == written(*reversed(pair))


def test_only_what_is_new_is_written() -> None:
    one = configuration("one", "01", selector=WEB)
    assert written(one, colocation_config_name="one") == {COLOCATION: "{}"}
    assert written(one, colocation_config_name="one", colocation_config="{}") is None


@pytest.mark.parametrize("others", [[], [configuration("db", "01", selector={"matchLabels": {"app": "db"}})]])
def test_a_pod_that_follows_none_any_more_is_told(others: list[ColocationConfiguration]) -> None:
    reported = written(*others, colocation_config_name="gone", colocation_config='{"memoryQos":{}}')
    assert reported == {COLOCATION_NAME: None, COLOCATION: "{}"}
    assert written(*others) is None
    assert written(*others, colocation_config="{}") is None
