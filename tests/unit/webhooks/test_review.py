"""AdmissionReviews in and out."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from webhooks import review
from webhooks.review import Answer, MalformedReview


def body(**request: Any) -> bytes:
    asked = {"uid": "u", "resource": {"group": "g", "version": "v1", "resource": "things"}, "operation": "CREATE"}
    return json.dumps(
        {"apiVersion": review.API_VERSION, "kind": "AdmissionReview", "request": asked | request}
    ).encode()


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def test_a_request_is_read_with_what_rules_need() -> None:
    asked = review.parse(
        body(name="n", namespace="ns", subResource="status", object={"a": 1}, oldObject={"a": 2}, x=[])
    )
    assert (asked.uid, asked.operation, asked.name, asked.namespace) == ("u", "CREATE", "n", "ns")
    assert (str(asked.resource), asked.sub_resource) == ("things.g", "status")
    assert (asked.object, asked.old_object) == ({"a": 1}, {"a": 2})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (b"", "no AdmissionReview"),
        (b"{", "no AdmissionReview"),
        (b"\xff\xfe", "no AdmissionReview"),
        (b"[]", "no AdmissionReview"),
        (b'{"apiVersion": 1, "kind": "AdmissionReview"}', "no AdmissionReview"),
        (b'{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"}', "want admission.k8s.io/v1"),
        (b'{"apiVersion": "admission.k8s.io/v1", "kind": "Pod"}', "kind Pod"),
        (b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}', "no request"),
        (body(uid=""), "request.uid"),
        (body(uid=7), "$.request.uid"),
        (body(object=[]), "$.request.object"),
        (body(object=nested(review.DEEPEST)), "nested deeper than 64 levels"),
        (body(oldObject={"a": [0] * review.MOST_VALUES}), f"more than {review.MOST_VALUES} values"),
        (b'{"a":' * 100_000, "nested deeper|no AdmissionReview"),
    ],
)
def test_what_is_no_review_is_refused_with_the_reason(given: bytes, said: str) -> None:
    with pytest.raises(MalformedReview, match=said.replace("$", r"\$")):
        review.parse(given)


def test_objects_at_the_limits_are_taken() -> None:
    assert review.parse(body(object=nested(review.DEEPEST - 1))).object == nested(review.DEEPEST - 1)
    assert review.parse(body(object={"a": [0] * (review.MOST_VALUES - 2)})).object


def test_an_answer_has_what_an_api_server_reads() -> None:
    patch = [{"op": "add", "path": "/a", "value": 1}]
    answered = json.loads(review.render("u", Answer(allowed=True, patch=patch)))
    assert answered["response"]["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(answered["response"]["patch"])) == patch
    assert json.loads(review.render("u", Answer(allowed=True)))["response"] == {"uid": "u", "allowed": True}
    denied = json.loads(review.render("u", Answer(allowed=False, message="no")))["response"]
    assert denied["status"] == {"status": "Failure", "message": "no"}
    later = json.loads(review.render("u", Answer(allowed=False, message="no", code=503, reason="ServiceUnavailable")))
    assert later["response"]["status"]["code"] == 503


def test_warnings_are_short_and_few() -> None:
    """An API server cuts them off otherwise, and a line break in one would end the header."""
    answered = json.loads(review.render("u", Answer(allowed=True, warnings=["a\nb" + "c" * 500] * 100)))
    warnings = answered["response"]["warnings"]
    assert (len(warnings), warnings[-1]) == (20, "and 81 more warnings")
    assert all(len(warning) <= 256 and "\n" not in warning for warning in warnings)
