"""What the SDK makes of refusals."""

from __future__ import annotations

import copy
import pickle

import pytest

from vcbatch import (
    AdmissionDenied,
    AlreadyExists,
    Conflict,
    Forbidden,
    Job,
    JobFailed,
    NotFound,
    ServerError,
    Unavailable,
    VcbatchError,
)
from vcbatch.interfaces.api import ApiError
from vcbatch.sdk.errors import error_of

CAUSES = {"causes": [{"field": "spec.queue", "message": "no such queue", "reason": "FieldValueNotFound"}, "odd"]}
WEBHOOK = 'admission webhook "jobs.validate.volcano.sh" denied the request: no'


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ApiError(404, "NotFound", "x", {"name": "x"}), NotFound),
        (ApiError(404, "NotFound", "the server could not find the requested resource"), NotFound),
        (ApiError(409, "AlreadyExists", "x"), AlreadyExists),
        (ApiError(409, "Conflict", "x"), Conflict),
        (ApiError(401, "Unauthorized", "x"), Forbidden),
        (ApiError(403, "Forbidden", "x"), Forbidden),
        (ApiError(403, "Forbidden", WEBHOOK), AdmissionDenied),
        (ApiError(400, "", WEBHOOK), AdmissionDenied),
        (ApiError(422, "Invalid", "x", CAUSES), AdmissionDenied),
        (ApiError(400, "BadRequest", "x"), ServerError),
        (ApiError(0, "Timeout", "x"), Unavailable),
        (ApiError(429, "TooManyRequests", "x"), Unavailable),
        (ApiError(503, "ServiceUnavailable", "x"), Unavailable),
    ],
)
def test_each_refusal_is_the_error_that_it_is(error: ApiError, kind: type[ServerError]):
    made = error_of(error, "https://server")
    assert type(made) is kind
    assert (made.code == error.code and "x" in str(made)) or kind is AdmissionDenied or not error.details
    assert made.hint or type(made) is ServerError


def test_a_missing_right_is_told_with_what_gives_it():
    words = 'cannot create resource "jobs" in API group "batch.volcano.sh" in the namespace "ci"'
    error = error_of(ApiError(403, "Forbidden", f'jobs.batch.volcano.sh is forbidden: User "eve" {words}'), "")
    assert type(error) is Forbidden
    assert error.message == "eve cannot create jobs.batch.volcano.sh in namespace ci"
    assert "{apiGroups: [batch.volcano.sh], resources: [jobs], verbs: [create]}" in error.hint


def test_a_refusal_by_admission_names_its_fields():
    error = error_of(ApiError(422, "Invalid", "all of it", CAUSES), "")
    assert isinstance(error, AdmissionDenied)
    assert (error.field, error.reason, error.errors) == (
        "spec.queue",
        "no such queue",
        (("spec.queue", "no such queue"),),
    )


@pytest.mark.parametrize(("kind", "hint"), [("namespaces", "create namespace x"), ("queues", "client.queues()")])
def test_what_is_missing_is_looked_for_where_it_may_be(kind: str, hint: str):
    assert hint in error_of(ApiError(404, "NotFound", "x", {"name": "x", "kind": kind}), "").hint


def test_the_hint_is_part_of_the_text():
    assert str(VcbatchError("it is so", hint="Do that.")) == "it is so\n  Do that."
    assert str(VcbatchError("it is so")) == "it is so"


def test_errors_can_be_copied_and_sent_to_other_processes():
    error = JobFailed("failed", hint="Look.", job=Job(name="a"), exit_codes={"a-0": 3})
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(again) is JobFailed and str(again) == str(error)
        assert again.exit_codes == {"a-0": 3} and again.job == error.job
