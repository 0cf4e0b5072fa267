"""Named checks are reported as kube-apiserver reports its own."""

from __future__ import annotations

from vcbatch.hosting.checks import Checks


def ok() -> str:
    return ""


def broken() -> str:
    raise RuntimeError("password=secret")


CHECKS = Checks("readyz", {"caches": ok, "permissions": lambda: "may not\nlist pods", "tasks": ok})


def test_all_that_pass_say_ok_and_are_listed_on_demand() -> None:
    checks = Checks("readyz", {"caches": ok, "tasks": ok})
    assert (checks.answer({}).code, checks.answer({}).body) == (200, b"ok")
    listed = checks.answer({"verbose": [""]})
    assert (listed.code, listed.body) == (200, b"[+]caches ok\n[+]tasks ok\nreadyz check passed\n")


def test_one_that_fails_is_named_with_its_reason_in_one_line() -> None:
    answer = CHECKS.answer({})
    assert answer.code == 503
    assert answer.body.decode().splitlines() == [
        "[+]caches ok",
        "[-]permissions failed: may not list pods",
        "[+]tasks ok",
        "readyz check failed",
    ]


def test_checks_can_be_left_out() -> None:
    assert CHECKS.answer({"exclude": ["permissions"]}).code == 200
    assert CHECKS.answer({"exclude": ["caches,permissions"]}).code == 200
    assert CHECKS.answer({"exclude": ["caches"]}).code == 503
    listed = CHECKS.answer({"exclude": ["permissions", "nothing"], "verbose": [""]}).body.decode()
    assert listed.splitlines() == [
        "[+]caches ok",
        "[+]permissions excluded: ok",
        "[+]tasks ok",
        "warn: no check is named nothing",
        "readyz check passed",
    ]


def test_one_check_answers_for_itself() -> None:
    assert (CHECKS.answer_one("caches").code, CHECKS.answer_one("caches").body) == (200, b"ok")
    refused = CHECKS.answer_one("permissions")
    assert (refused.code, refused.body) == (503, b"may not list pods")
    assert CHECKS.answer_one("nothing").code == 404


def test_a_check_that_breaks_fails_without_its_error() -> None:
    answer = Checks("readyz", {"broken": broken}).answer({})
    assert answer.code == 503
    assert b"[-]broken failed: it can't be carried out" in answer.body
    assert b"secret" not in answer.body


def test_a_check_that_is_put_in_place_of_another_keeps_its_line() -> None:
    checks = Checks("readyz", {"a": lambda: "not started yet", "b": ok})
    assert checks.answer({}).code == 503
    checks.put("a", ok)
    assert checks.answer({"verbose": [""]}).body == b"[+]a ok\n[+]b ok\nreadyz check passed\n"


def test_a_long_reason_is_cut() -> None:
    assert len(Checks("readyz", {"a": lambda: "x" * 10_000}).answer({}).body) < 600
