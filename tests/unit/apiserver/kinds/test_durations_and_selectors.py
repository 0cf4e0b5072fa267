"""Ages and selectors in Kubernetes' words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcbatch.api import selectors
from vcbatch.api.duration import human
from vcbatch.local.apiserver.tables import access_modes_text, labels_text, selector_text, since

HOUR, DAY = 3600, 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (600, "10m"),
        (10799, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 90, "3h1m"),
        (8 * HOUR - 1, "7h59m"),
        (8 * HOUR + 90, "8h"),
        (2 * DAY, "2d"),
        (2 * DAY + HOUR, "2d1h"),
        (8 * DAY + HOUR, "8d"),
        (730 * DAY - 1, "729d"),
        (730 * DAY, "2y"),
        (731 * DAY, "2y1d"),
        (2920 * DAY + DAY, "8y"),
    ],
)
def test_durations(seconds: int, text: str) -> None:
    assert human(timedelta(seconds=seconds)) == text


@settings(max_examples=50)
@given(st.integers(min_value=0, max_value=20 * 365 * DAY))
def test_a_duration_is_short_and_has_at_most_two_units(seconds: int) -> None:
    text = human(timedelta(seconds=seconds))
    assert len(text) <= 7
    assert 1 <= sum(char.isalpha() for char in text) <= 2


@pytest.mark.parametrize("text", [None, "", "yesterday", 7])
def test_no_time_no_age(text: Any) -> None:
    assert since(text, datetime(2026, 1, 1, tzinfo=UTC)) == "<unknown>"


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        (None, "<none>"),
        ({}, "<none>"),
        ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
        (
            {
                "matchLabels": {"a": "1"},
                "matchExpressions": [
                    {"key": "b", "operator": "In", "values": ["z", "y"]},
                    {"key": "c", "operator": "NotIn", "values": ["x"]},
                    {"key": "d", "operator": "Exists"},
                    {"key": "e", "operator": "DoesNotExist"},
                ],
            },
            "!e,a=1,b in (y,z),c notin (x),d",
        ),
    ],
)
def test_selectors_as_text(selector: Any, text: str) -> None:
    assert selector_text(selector) == text


def test_labels_and_access_modes() -> None:
    assert labels_text({"b": "2", "a": "1"}) == "a=1,b=2"
    assert labels_text({}) == "<none>"
    assert access_modes_text(["ReadWriteMany", "ReadWriteOnce", "ReadWriteMany"]) == "RWO,RWX"


@pytest.mark.parametrize(
    ("selector", "labels", "matched"),
    [
        (None, {"a": "1"}, False),
        ({}, {}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, {"a": "2"}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {}, True),
    ],
)
def test_matching(selector: Any, labels: dict[str, str], matched: bool) -> None:
    assert selectors.matches(selector, labels) is matched


def test_faults_of_a_selector_name_their_place() -> None:
    faulty = {
        "matchExpressions": [
            {"key": "a", "operator": "In"},
            {"key": "b", "operator": "Exists", "values": ["x"]},
            {"key": "c", "operator": "is"},
        ]
    }
    assert [str(error) for error in selectors.selector_errors(faulty, "s")] == [
        "s.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        "s.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        's.matchExpressions[2].operator: Invalid value: "is": not a valid selector operator',
    ]
