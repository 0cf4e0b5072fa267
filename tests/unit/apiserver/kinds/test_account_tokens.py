"""`serviceaccounts/token`: what is issued, for whom it is valid, and when it ends."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.apiserver.core.servers import Client, server, virtual
from tests.unit.apiserver.kinds.support import PODS, bind, make_pod
from vcbatch.local.apiserver.access import User
from vcbatch.local.apiserver.apierrors import StatusError
from vcbatch.local.apiserver.authn import Authenticator
from vcbatch.local.apiserver.tokens import ISSUER, ServiceAccountTokens, TokenRefused

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
SECRETS = "/api/v1/namespaces/default/secrets"
TOKEN = f"{ACCOUNTS}/robot/token"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
NAME = "system:serviceaccount:default:robot"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@asynccontextmanager
async def robot() -> AsyncIterator[Client]:
    async with server() as client:
        assert (await client.post(ACCOUNTS, {"metadata": {"name": "robot"}})).code == 201
        yield client


async def issued(client: Client, **spec: Any) -> Any:
    answer = await client.post(TOKEN, {"spec": spec})
    assert answer.code == 201, answer.body
    return answer.body


async def review(client: Client, token: str, *audiences: str) -> Any:
    answer = await client.post(REVIEWS, {"spec": {"token": token, "audiences": list(audiences)}})
    return answer.body["status"]


def claims(token: str) -> Any:
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


@virtual
async def test_a_token_is_issued_for_an_hour_and_this_server() -> None:
    async with robot() as client:
        answer = await issued(client)
        assert (answer["kind"], answer["apiVersion"]) == ("TokenRequest", "authentication.k8s.io/v1")
        assert (answer["metadata"]["name"], answer["metadata"]["namespace"]) == ("robot", "default")
        assert answer["spec"] == {"audiences": [ISSUER], "expirationSeconds": 3600, "boundObjectRef": None}
        token = claims(answer["status"]["token"])
        account = (await client.get(f"{ACCOUNTS}/robot")).body
        assert (token["sub"], token["iss"], token["aud"]) == (NAME, ISSUER, [ISSUER])
        assert token["exp"] - token["iat"] == 3600
        assert token["kubernetes.io"] == {
            "namespace": "default",
            "serviceaccount": {"name": "robot", "uid": account["metadata"]["uid"]},
        }
        status = await review(client, answer["status"]["token"])
        assert status["authenticated"] is True
        assert status["audiences"] == [ISSUER]
        assert status["user"]["username"] == NAME
        assert status["user"]["uid"] == account["metadata"]["uid"]
        assert status["user"]["groups"] == [
            "system:serviceaccounts",
            "system:serviceaccounts:default",
            "system:authenticated",
        ]


@virtual
async def test_a_token_is_for_its_audiences_alone() -> None:
    async with robot() as client:
        token = (await issued(client, audiences=["vault", "other"]))["status"]["token"]
        assert (await review(client, token, "vault", "nobody"))["audiences"] == ["vault"]
        for asked in ((), ("nobody",)):
            assert "is invalid for the target audiences" in (await review(client, token, *asked))["error"]


@virtual
async def test_a_token_ends_with_its_time() -> None:
    async with robot() as client:
        token = (await issued(client, expirationSeconds=600))["status"]["token"]
        await asyncio.sleep(599)
        assert (await review(client, token))["authenticated"] is True
        await asyncio.sleep(1)
        assert await review(client, token) == {"user": {}, "error": "service account token has expired"}


@virtual
async def test_a_token_ends_with_its_account_also_where_that_is_made_again() -> None:
    async with robot() as client:
        token = (await issued(client))["status"]["token"]
        await client.delete(f"{ACCOUNTS}/robot")
        assert "serviceaccount robot is gone" in (await review(client, token))["error"]
        await client.post(ACCOUNTS, {"metadata": {"name": "robot"}})
        assert "serviceaccount robot was created again" in (await review(client, token))["error"]


@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
        (SECRETS, {"metadata": {"name": "x"}}, "Secret"),
        ("/api/v1/nodes", {"metadata": {"name": "x"}}, "Node"),
        (PODS, {"metadata": {"name": "x"}, "spec": {"serviceAccountName": "robot"}}, "Pod"),
    ],
)
@virtual
async def test_a_token_ends_with_what_it_is_bound_to(path: str, body: Any, kind: str) -> None:
    async with robot() as client:
        if kind == "Pod":
            body["spec"]["containers"] = [{"name": "c", "image": "i"}]
        made = (await client.post(path, body)).body
        reference = {"kind": kind, "apiVersion": "v1", "name": "x"}
        answer = await issued(client, boundObjectRef={**reference, "uid": made["metadata"]["uid"]})
        token = answer["status"]["token"]
        bound = claims(token)["kubernetes.io"][kind.lower()]
        assert bound == {"name": "x", "uid": made["metadata"]["uid"]}
        assert (await review(client, token))["authenticated"] is True
        wrong = await client.post(TOKEN, {"spec": {"boundObjectRef": {**reference, "uid": "other"}}})
        assert wrong.code == 409
        assert "the UID in the bound object reference (other) does not match the UID in record" in wrong.message
        await client.delete(f"{path}/x")
        assert f"{kind.lower()} x is gone" in (await review(client, token))["error"]
        missing = await client.post(TOKEN, {"spec": {"boundObjectRef": reference}})
        assert missing.code == 404


@virtual
async def test_a_token_of_a_pod_names_its_node_and_outlives_it() -> None:
    async with robot() as client:
        node = (await client.post("/api/v1/nodes", {"metadata": {"name": "n"}})).body
        await make_pod(client, serviceAccountName="robot")
        await bind(client)
        reference = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
        token = (await issued(client, boundObjectRef=reference))["status"]["token"]
        await client.delete("/api/v1/nodes/n")
        extra = (await review(client, token))["user"]["extra"]
        assert extra["authentication.kubernetes.io/pod-name"] == ["p"]
        assert extra["authentication.kubernetes.io/node-uid"] == [node["metadata"]["uid"]]


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({"spec": {"expirationSeconds": 599}}, 422, "spec.expirationSeconds: Invalid value: 599: may not specify a"),
        ({"spec": {"expirationSeconds": 2**32 + 1}}, 422, "may not specify a duration larger than 2^32 seconds"),
        ({"spec": {"expirationSeconds": "600"}}, 400, "expirationSeconds of type int64"),
        ({"spec": {"audiences": "x"}}, 400, "audiences"),
        ({"spec": {"bogus": 1}}, 400, 'unknown field "spec.bogus"'),
        ({"metadata": {"name": "other"}}, 422, "must match the service account name if specified"),
        ({"metadata": {"namespace": "other"}}, 422, "must match the service account namespace if specified"),
        ({"metadata": {"uid": "other"}}, 409, "does not match the UID of the service account"),
        ({"kind": "Pod", "apiVersion": "v1"}, 400, "does not match the expected"),
        ({"spec": {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1"}}}, 400, "of type /v1, Kind=ConfigMap"),
        ({"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}}}, 400, "different service"),
    ],
)  # fmt: skip
@virtual
async def test_a_request_that_cannot_be_met_is_refused(body: Any, code: int, words: str) -> None:
    async with robot() as client:
        await make_pod(client)
        answer = await client.post(f"{TOKEN}?fieldValidation=Strict", body)
        assert answer.code == code, answer.body
        assert words in answer.message


@virtual
async def test_tokens_are_for_administrators_and_existing_accounts() -> None:
    async with robot() as client:
        assert (await client.post(f"{ACCOUNTS}/nobody/token", {})).message == 'serviceaccounts "nobody" not found'
        assert (await client.get(TOKEN)).code == 405
        somebody = User(name=NAME, groups=("system:authenticated",))
        refused = await client.post(TOKEN, {}, user=somebody)
        assert refused.code == 403
        assert f'User "{NAME}" cannot create resource "serviceaccounts/token"' in refused.message


@virtual
async def test_discovery_lists_the_subresource() -> None:
    async with server() as client:
        resources = (await client.get("/api/v1")).body["resources"]
        assert next(one for one in resources if one["name"] == "serviceaccounts/token") == {
            "name": "serviceaccounts/token",
            "singularName": "",
            "namespaced": True,
            "group": "authentication.k8s.io",
            "version": "v1",
            "kind": "TokenRequest",
            "verbs": ["create"],
        }


@virtual
async def test_a_token_of_an_account_authenticates_it_and_a_foreign_one_nobody() -> None:
    tokens = ServiceAccountTokens()
    async with server(tokens=tokens) as client:
        await client.post(ACCOUNTS, {"metadata": {"name": "robot"}})
        token = (await issued(client))["status"]["token"]
        engine = client.kernel.engine

        def account(text: str) -> User | None:
            try:
                return tokens.verify(text, now=engine.now(), lookup=engine.lookup).user
            except TokenRefused:
                return None

        authenticator = Authenticator("secret", account=account)
        assert authenticator.user("/", {"authorization": f"Bearer {token}"}, None).name == NAME
        metadata = (await client.get(f"{ACCOUNTS}/robot")).body
        foreign = ServiceAccountTokens().issue(metadata, audiences=[ISSUER], seconds=600, now=engine.now(), bound={})
        with pytest.raises(StatusError) as refused:
            authenticator.user("/", {"authorization": f"Bearer {foreign}"}, None)
        assert refused.value.code == 401


_ACCOUNT = {"metadata": {"name": "robot", "namespace": "default", "uid": "u"}}
_TOKENS = ServiceAccountTokens()
_ISSUED = _TOKENS.issue(_ACCOUNT, audiences=[ISSUER], seconds=600, now=NOW, bound={})


@given(st.integers(0, len(_ISSUED) - 1), st.sampled_from("Aa0-_.= é"))
def test_a_token_that_was_changed_anywhere_is_refused(at: int, letter: str) -> None:
    changed = _ISSUED[:at] + letter + _ISSUED[at + 1 :]
    if changed != _ISSUED and at < len(_ISSUED) - 1:  # the last digit has spare bits
        with pytest.raises(TokenRefused):
            _TOKENS.verify(changed, now=NOW, lookup=lambda *_: _ACCOUNT)


def test_the_token_that_was_issued_is_taken() -> None:
    assert _TOKENS.verify(_ISSUED, now=NOW, lookup=lambda *_: _ACCOUNT).user.name == NAME


@given(st.text(max_size=60) | st.text(alphabet='eyJ.{}":-_=', max_size=200))
def test_any_text_is_refused_as_a_token(text: str) -> None:
    with pytest.raises(TokenRefused):
        _TOKENS.verify(text, now=NOW, lookup=lambda *_: _ACCOUNT)


@pytest.mark.parametrize("algorithm", ["none", "HS256", "RS256"])
def test_other_algorithms_are_refused(algorithm: str) -> None:
    header = base64.urlsafe_b64encode(json.dumps({"alg": algorithm}).encode()).decode().rstrip("=")
    with pytest.raises(TokenRefused):
        _TOKENS.verify(".".join([header, *_ISSUED.split(".")[1:]]), now=NOW, lookup=lambda *_: _ACCOUNT)
