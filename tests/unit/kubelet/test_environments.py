"""Environments of submitting shells: who may read them, and when they are removed."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from vcbatch.local.environments import EnvironmentRefusedError, Environments, SubmittedEnvironment

GIVEN = SubmittedEnvironment(
    variables={"TOKEN": "secret", "BASH_FUNC_module%%": "() { :; }"}, umask=0o027, complete=False
)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.fixture
def environments(state: Path) -> Environments:
    return Environments.of(state)


def claimed(environments: Environments, *, job: str = "uid-1") -> str:
    number = environments.write(GIVEN, namespace="default")
    environments.claim(number, namespace="default", job=job)
    return number


def test_its_job_gets_what_was_stored_and_no_other_user_can_read_it(state: Path, environments: Environments) -> None:
    before = os.umask(0)
    try:
        number = claimed(environments)
    finally:
        os.umask(before)
    assert environments.read(number, namespace="default", job="uid-1") == GIVEN
    assert stat.S_IMODE((state / "environments").stat().st_mode) == 0o700
    assert stat.S_IMODE((state / "environments" / number).stat().st_mode) == 0o600


@pytest.mark.parametrize(("namespace", "job"), [("default", "uid-2"), ("other", "uid-1"), ("default", "")])
def test_another_job_with_the_same_id_gets_nothing(environments: Environments, namespace: str, job: str) -> None:
    number = claimed(environments)
    environments.claim(number, namespace=namespace, job=job)
    with pytest.raises(EnvironmentRefusedError, match="belongs to another job"):
        environments.read(number, namespace=namespace, job=job)
    assert environments.read(number, namespace="default", job="uid-1") == GIVEN


def test_before_its_job_is_known_no_pod_gets_it(environments: Environments) -> None:
    number = environments.write(GIVEN, namespace="default")
    environments.claim(number, namespace="other", job="uid-2")
    for job in ("", "uid-1", "uid-2"):
        with pytest.raises(EnvironmentRefusedError, match="has no job yet"):
            environments.read(number, namespace="default", job=job)


@pytest.mark.parametrize("form", ["../{0}", "./{0}", "{0}/", "{path}", "", ".", "{0}\n", "{upper}"])
def test_an_id_is_never_a_path(state: Path, environments: Environments, form: str) -> None:
    number = claimed(environments)
    (state / number).write_bytes((state / "environments" / number).read_bytes())
    (state / number).chmod(0o600)
    asked = form.format(number, path=state / "environments" / number, upper=number.upper() + "X")
    with pytest.raises(EnvironmentRefusedError, match="doesn't exist"):
        environments.read(asked, namespace="default", job="uid-1")
    environments.remove(asked)
    assert (state / number).exists() and (state / "environments" / number).exists()


def test_links_pipes_directories_and_files_that_others_could_have_written_are_ignored(
    state: Path, environments: Environments
) -> None:
    number = claimed(environments)
    directory = state / "environments"
    link, pipe, folder = ("a" * 32, "b" * 32, "c" * 32)
    (directory / link).symlink_to(directory / number)
    os.mkfifo(directory / pipe, 0o600)
    (directory / folder).mkdir(mode=0o700)
    for other in (link, pipe, folder):
        with pytest.raises(EnvironmentRefusedError):
            environments.read(other, namespace="default", job="uid-1")
    (directory / number).chmod(0o640)
    with pytest.raises(EnvironmentRefusedError):
        environments.read(number, namespace="default", job="uid-1")


@pytest.mark.parametrize(
    "change",
    [{"umask": 0o1777}, {"umask": "18"}, {"variables": {"A": 1}}, {"variables": []}, {"complete": 1}, {"job": None}],
)
def test_a_damaged_file_is_refused(state: Path, environments: Environments, change: dict) -> None:
    number = claimed(environments)
    path = state / "environments" / number
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(EnvironmentRefusedError):
        environments.read(number, namespace="default", job="uid-1")


def test_nothing_is_written_where_others_could_replace_it(state: Path, environments: Environments) -> None:
    state.chmod(0o770)
    with pytest.raises(PermissionError):
        environments.write(GIVEN, namespace="default")
    state.chmod(0o700)
    elsewhere = state / "elsewhere"
    elsewhere.mkdir()
    (state / "environments").symlink_to(elsewhere)
    with pytest.raises(PermissionError):
        environments.write(GIVEN, namespace="default")
    assert list(elsewhere.iterdir()) == []


def test_it_is_removed_with_its_job_alone(state: Path, environments: Environments) -> None:
    number = claimed(environments)
    environments.release(number, job="uid-2")
    assert environments.read(number, namespace="default", job="uid-1") == GIVEN
    environments.release(number, job="uid-1")
    assert list((state / "environments").iterdir()) == []


def test_a_restart_keeps_those_of_known_jobs_and_of_fresh_submissions(state: Path, environments: Environments) -> None:
    known, lost = claimed(environments, job="known"), claimed(environments, job="lost")
    fresh, old = (environments.write(GIVEN, namespace="default") for _ in range(2))
    os.utime(state / "environments" / old, (0, 0))
    os.utime(state / "environments" / known, (0, 0))
    environments.retain({"known"})
    assert {path.name for path in (state / "environments").iterdir()} == {known, fresh}
    assert lost not in (known, fresh)


def test_text_that_is_not_utf8_survives(environments: Environments) -> None:
    value = os.fsdecode(b"caf\xe9")
    number = environments.write(SubmittedEnvironment(variables={"DIR": value}), namespace="default")
    environments.claim(number, namespace="default", job="uid")
    assert os.fsencode(environments.read(number, namespace="default", job="uid").variables["DIR"]) == b"caf\xe9"
