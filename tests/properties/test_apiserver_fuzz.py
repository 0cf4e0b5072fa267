"""A small part of `make fuzz-apiserver`: any request is answered, quickly, and leaves the store within its bounds."""

from __future__ import annotations

from tests.fuzz.apiserver import fuzz


def test_any_request_is_answered() -> None:
    report = fuzz(5000, seed=7)
    assert report.errors == []
    assert report.codes[200] + report.codes[201] > 1000, "many are carried out"
    assert report.codes[400] + report.codes[422] > 1000, "and many refused"
