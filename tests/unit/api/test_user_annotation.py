"""The annotation with the user of a job: set by admission, and by no user."""

from __future__ import annotations

from typing import Any

from tests.support.admission_world import World
from vcbatch.api.admission import Operation, Request, Settings, User, mutate, mutation_warnings
from vcbatch.api.names import CONTROLLERS_USER, USER
from vcbatch.api.resources import JOBS

Json = dict[str, Any]


def job(user: str | None = None, **annotations: str) -> Json:
    given = {**annotations, **({USER: user} if user is not None else {})}
    metadata: Json = {"name": "j", **({"annotations": given} if given else {})}
    return {"metadata": metadata, "spec": {"tasks": [{"name": "w", "replicas": 1, "template": {}}]}}


def submit(
    given: Json, *, by: str, old: Json | None = None, settings: Settings | None = None
) -> tuple[str | None, list[str]]:
    """The user in the stored object, and the warnings about it."""
    operation = Operation.CREATE if old is None else Operation.UPDATE
    request = Request(
        resource=JOBS, operation=operation, name="j", namespace="ns", object=given, old=old, user=User(name=by)
    )
    filled = mutate(request, World(), settings or Settings())
    assert filled is not None
    said = [warning for warning in mutation_warnings(request, filled) if USER in warning]
    return filled["metadata"].get("annotations", {}).get(USER), said


def test_a_new_job_has_the_user_of_the_request() -> None:
    assert submit(job(), by="alice") == ("alice", [])
    assert submit(job("alice"), by="alice") == ("alice", [])


def test_another_user_is_replaced_with_a_warning() -> None:
    user, said = submit(job("bob", other="kept"), by="alice")
    assert user == "alice"
    assert said == ["metadata.annotations[vcbatch.dev/user]: becomes alice, the user who created it"]


def test_the_controllers_name_the_user_for_whom_they_create_a_job() -> None:
    assert submit(job("bob"), by=CONTROLLERS_USER) == ("bob", [])
    assert submit(job(), by=CONTROLLERS_USER) == (CONTROLLERS_USER, [])
    elsewhere = Settings(controllers="system:serviceaccount:batch:controllers")
    assert submit(job("bob"), by=CONTROLLERS_USER, settings=elsewhere)[0] == CONTROLLERS_USER
    assert submit(job("bob"), by=elsewhere.controllers, settings=elsewhere) == ("bob", [])


def test_no_update_changes_it() -> None:
    for by in ("alice", "bob", CONTROLLERS_USER):
        user, said = submit(job("bob"), by=by, old=job("alice"))
        assert (user, len(said)) == ("alice", 1)
        assert submit(job(), by=by, old=job("alice")) == ("alice", [])
        user, said = submit(job("bob"), by=by, old=job())
        assert (user, len(said)) == (None, 1)
        assert submit(job(), by=by, old=job()) == (None, [])


def test_without_a_user_nothing_is_changed() -> None:
    """`vcbatch lint` has no user."""
    assert submit(job("bob"), by="") == ("bob", [])
    assert submit(job(), by="") == (None, [])
