"""Tokens of service accounts: JSON Web Tokens (RFC 7519), signed with ES256, valid as long as the objects that they are
bound to exist.

Source: kubernetes `pkg/serviceaccount/jwt.go` and `claims.go`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from vcbatch.api.resources import NODES, PODS, SECRETS, SERVICEACCOUNTS, Resource
from vcbatch.local.apiserver.access import AUTHENTICATED, User
from vcbatch.local.apiserver.tables import dig, parse_time

Json = dict[str, Any]
Lookup = Callable[[Resource, str | None, str], Json | None]

ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
"""The issuer of all tokens, and this server's audience."""


_ALGORITHM, _WIDTH = "ES256", 32
_LONGEST: Final = 16_384
_LEEWAY: Final = 60
"""Seconds for which an object counts after its deletion, and for which a clock may have been ahead."""

_BOUND: Mapping[str, Resource] = {"pod": PODS, "secret": SECRETS, "node": NODES}


class TokenRefused(Exception):
    """An invalid token; the text is for the review that requested it."""


@dataclass(frozen=True, slots=True)
class Verified:
    """The user of a token, and the requested audiences for which it is valid."""

    user: User
    audiences: Sequence[str]


class ServiceAccountTokens:
    """Issues and verifies tokens with one key."""

    def __init__(self, key: ec.EllipticCurvePrivateKey | None = None) -> None:
        self._key = key or ec.generate_private_key(ec.SECP256R1())
        public = self._key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self._key_id = _encoded(hashlib.sha256(public).digest())

    def issue(
        self,
        account: Json,
        *,
        audiences: Sequence[str],
        seconds: int,
        now: datetime,
        bound: Mapping[str, Json],
    ) -> str:
        """A token of a service account, valid for that many seconds. `bound` are the objects that it is bound to, by
        `pod`, `secret` or `node`; a pod's node is only named."""
        metadata = account["metadata"]
        issued = int(now.timestamp())
        claims = {
            "aud": list(audiences),
            "exp": issued + seconds,
            "iat": issued,
            "iss": ISSUER,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": {
                "namespace": metadata["namespace"],
                **{kind: _reference(obj) for kind, obj in sorted(bound.items())},
                "serviceaccount": _reference(account),
            },
            "nbf": issued,
            "sub": f"system:serviceaccount:{metadata['namespace']}:{metadata['name']}",
        }
        header = {"alg": _ALGORITHM, "kid": self._key_id}
        signed = ".".join(_encoded(msgspec.json.encode(part)) for part in (header, claims))
        first, second = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{_encoded(first.to_bytes(_WIDTH, 'big') + second.to_bytes(_WIDTH, 'big'))}"

    def verify(self, token: str, *, audiences: Sequence[str] = (ISSUER,), now: datetime, lookup: Lookup) -> Verified:
        """The user of a token. Raises `TokenRefused` for a token that this server has not issued, for other audiences,
        after its expiry, and once the account or an object that it is bound to is deleted."""
        claims = self._claims(token)
        valid = [audience for audience in claims["aud"] if audience in audiences]
        if not valid:
            raise TokenRefused(f"token audiences {claims['aud']} is invalid for the target audiences {[*audiences]}")
        seconds = now.timestamp()
        if seconds >= claims["exp"]:
            raise TokenRefused("service account token has expired")
        if seconds < claims["nbf"] - _LEEWAY:
            raise TokenRefused("service account token is not valid yet")
        about: Json = claims["kubernetes.io"]
        namespace: str = about["namespace"]
        account: Json = about["serviceaccount"]
        _check(lookup(SERVICEACCOUNTS, namespace, account["name"]), account, f"serviceaccount {account['name']}", now)
        for kind, resource in _BOUND.items():
            # The node of a pod is informational; only a token without a pod is bound to its node.
            if kind in about and not (kind == "node" and "pod" in about):
                found = lookup(resource, namespace if resource.namespaced else None, about[kind]["name"])
                _check(found, about[kind], f"{kind} {about[kind]['name']}", now)
        return Verified(_user(claims, about, namespace, account), valid)

    def _claims(self, token: str) -> Json:
        """The claims of a token that this key has signed."""
        parts = token.split(".")
        if len(token) > _LONGEST or len(parts) != 3:
            raise TokenRefused("invalid bearer token")
        header, claims, signature = (_decoded(part) for part in parts)
        if len(signature) != 2 * _WIDTH:
            raise TokenRefused("invalid bearer token")
        raw = encode_dss_signature(*(int.from_bytes(half, "big") for half in (signature[:_WIDTH], signature[_WIDTH:])))
        signed = f"{parts[0]}.{parts[1]}".encode("ascii")
        try:
            self._key.public_key().verify(raw, signed, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            raise TokenRefused("invalid bearer token") from None
        if msgspec.json.decode(header)["alg"] != _ALGORITHM:
            raise TokenRefused("invalid bearer token")
        return msgspec.json.decode(claims)


def _check(found: Json | None, reference: Json, what: str, now: datetime) -> None:
    if found is None:
        raise TokenRefused(f"service account token has been invalidated: {what} is gone")
    if found["metadata"]["uid"] != reference["uid"]:
        raise TokenRefused(f"service account token has been invalidated: {what} was created again")
    deleted = parse_time(dig(found, "metadata", "deletionTimestamp"))
    if deleted is not None and (now - deleted).total_seconds() > _LEEWAY:
        raise TokenRefused(f"service account token has been invalidated: {what} is deleted")


def _user(claims: Json, about: Json, namespace: str, account: Json) -> User:
    prefix = "authentication.kubernetes.io"
    extra = {f"{prefix}/credential-id": [f"JTI={claims['jti']}"]}
    for kind in ("node", "pod"):
        if kind in about:
            extra[f"{prefix}/{kind}-name"] = [about[kind]["name"]]
            extra[f"{prefix}/{kind}-uid"] = [about[kind]["uid"]]
    return User(
        name=f"system:serviceaccount:{namespace}:{account['name']}",
        uid=account["uid"],
        groups=("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED),
        extra=extra,
    )


def _reference(obj: Json) -> Json:
    return {"name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"]}


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise TokenRefused("invalid bearer token") from None
