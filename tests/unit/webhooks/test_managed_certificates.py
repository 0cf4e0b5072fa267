"""Certificates that the service keeps itself: made, shared, renewed, mended."""

from __future__ import annotations

import base64
import ssl
from datetime import timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from tests.fakes.api import FakeApi
from tests.support.virtual_time import EPOCH
from tests.unit.webhooks.certificate_world import (
    NAMESPACE,
    SECRET,
    SERVICE,
    Replica,
    SetClock,
    bundles,
    cluster,
    days,
    held,
    stored,
    trusts,
)  # fmt: skip
from vcbatch.api.resources import SECRETS
from vcbatch.interfaces.api import ApiError
from webhooks.certificates.context import CertificateError
from webhooks.certificates.issue import Material
from webhooks.certificates.rotation import AUTHORITY_LIFE, LEAF_LIFE, SETTLING
from webhooks.certificates.trust import TrustError
from webhooks.configurations import MUTATING, NAMES

OURS = sum(map(len, NAMES.values()))


def replica(api: Any, clock: SetClock, **more: Any) -> Replica:
    return Replica(api=api, clock=clock, **more)


def secret_writes(api: FakeApi) -> int:
    return sum(1 for _, plural, _ in api.writes if plural == "secrets")


async def test_the_first_look_makes_everything() -> None:
    api, clock = cluster(), SetClock()
    one = replica(api, clock)
    await one.reconcile()
    (bundle,) = bundles(api)
    assert trusts(bundle, one.shown, clock.at)
    assert one.managed.serving.is_set() and one.managed.trusted.is_set()
    for resource in NAMES:
        (other,) = (made for made in api.all(resource) if made["metadata"]["name"] == "of-somebody-else")
        assert "caBundle" not in other["webhooks"][0]["clientConfig"], "not ours to write"


async def test_a_look_without_anything_due_writes_nothing() -> None:
    api, clock = cluster(), SetClock()
    one = replica(api, clock)
    await one.reconcile()
    before = list(api.writes)
    for _ in range(5):
        clock.at += days(1)
        await one.reconcile()
    assert api.writes == before


async def test_replicas_that_start_together_agree() -> None:
    api, clock = cluster(), SetClock()
    replicas = [replica(api, clock) for _ in range(3)]
    for one in replicas:
        await one.hear()
    for one in replicas:
        await one.managed.reconcile()
    assert len({one.shown for one in replicas}) == 1
    assert secret_writes(api) == 1
    assert len(bundles(api)) == 1


class _Racing(FakeApi):
    """Somebody else writes the Secret between our read and our write, once."""

    def __init__(self, inner: FakeApi, other: Replica) -> None:
        super().__init__()
        self.__dict__.update(vars(inner))
        self._other: Replica | None = other

    async def replace(self, resource: Any, body: Any, **more: Any) -> Any:
        other, self._other = self._other, None
        if other is not None:
            await other.reconcile()
        return await super().replace(resource, body, **more)


async def test_the_loser_takes_over_what_the_winner_wrote() -> None:
    clock = SetClock()
    plain = cluster()
    winner = replica(plain, clock)
    api = _Racing(plain, winner)
    winner.api = winner.managed._api = winner.managed._trust._api = api  # both speak to the same server
    loser = replica(api, clock)
    await loser.reconcile()
    assert loser.shown == winner.shown
    assert trusts(bundles(api).pop(), loser.shown, clock.at)


async def test_a_leaf_is_renewed_at_two_thirds_of_its_life_by_the_same_authority() -> None:
    api, clock = cluster(), SetClock()
    one = replica(api, clock)
    await one.reconcile()
    first, authorities = one.shown, list(held(api).authorities)
    clock.at = EPOCH + LEAF_LIFE * 0.6
    await one.reconcile()
    assert one.shown == first
    clock.at = EPOCH + LEAF_LIFE * 0.7
    await one.reconcile()
    assert one.shown != first
    assert list(held(api).authorities) == authorities
    assert trusts(bundles(api).pop(), one.shown, clock.at)


async def test_an_authority_is_trusted_for_a_while_before_it_signs_and_the_old_one_until_it_expires() -> None:
    api, clock = cluster(), SetClock()
    one, other = replica(api, clock), replica(api, clock)
    await one.reconcile()
    (old,) = held(api).authorities
    clock.at = EPOCH + AUTHORITY_LIFE * 0.6
    await one.reconcile()
    assert held(api).authorities == [old]
    clock.at = EPOCH + AUTHORITY_LIFE * 0.7
    await one.reconcile()
    new, still = held(api).authorities
    assert still == old
    leaf = held(api).leaf
    assert leaf is not None and leaf.issuer == old.fingerprint, "API servers haven't heard of the new one yet"
    await other.reconcile()
    before = other.shown
    clock.at += SETTLING + timedelta(seconds=1)
    await one.reconcile()
    leaf = held(api).leaf
    assert leaf is not None and leaf.issuer == new.fingerprint
    (bundle,) = bundles(api)
    assert trusts(bundle, one.shown, clock.at) and trusts(bundle, before, clock.at), "the other hasn't looked yet"
    clock.at = old.span.ends
    await one.reconcile()
    assert held(api).authorities == [new]
    assert trusts(bundles(api).pop(), one.shown, clock.at)


async def test_no_leaf_is_made_by_an_authority_that_couldnt_be_put_into_the_configurations() -> None:
    api, clock = cluster(), SetClock()
    one = replica(api, clock)
    for life in (0.0, 0.2, 0.4, 0.6):
        clock.at = EPOCH + AUTHORITY_LIFE * life
        await one.reconcile()
    clock.at = EPOCH + AUTHORITY_LIFE * 0.7
    allowed, api.patch = api.patch, _forbidden  # type: ignore[method-assign]
    for _ in range(3):
        with pytest.raises(TrustError, match="forbidden"):
            await one.reconcile()
        clock.at += SETTLING * 2
    old = held(api).authorities[-1]
    leaf = held(api).leaf
    assert leaf is not None and leaf.issuer == old.fingerprint
    assert trusts(bundles(api).pop(), one.shown, clock.at)
    api.patch = allowed  # type: ignore[method-assign]
    await one.reconcile()
    await one.reconcile()
    leaf = held(api).leaf
    assert leaf is not None and leaf.issuer != old.fingerprint
    assert trusts(bundles(api).pop(), one.shown, clock.at)


async def _forbidden(*_: Any, **__: Any) -> Any:
    raise ApiError(403, "Forbidden", "it is forbidden")


async def test_a_secret_that_was_taken_away_is_a_rotation_without_a_gap() -> None:
    api, clock = cluster(), SetClock()
    one, other = replica(api, clock), replica(api, clock)
    for each in (one, other):
        await each.reconcile()
    first = one.shown
    api.remove(SECRETS, SECRET, NAMESPACE)
    await one.reconcile()
    assert trusts(bundles(api).pop(), other.shown, clock.at)
    clock.at += SETTLING + timedelta(seconds=1)
    for each in (one, other):
        await each.reconcile()
        assert each.shown != first
        assert trusts(bundles(api).pop(), each.shown, clock.at)


@pytest.mark.parametrize(
    "spoiled",
    [
        {"ca.crt": "####"}, {"ca.key": ""}, {"tls.crt": "bm90IGE="}, {"tls.key": "LS0t"},
        dict.fromkeys(("ca.crt", "ca.key", "tls.crt", "tls.key"), "bm9uZQ=="), {"ca.crt": 7},
        {"tls.crt": "QUFB" * 90_000},
    ],
    ids=lambda spoiled: " ".join(spoiled),
)  # fmt: skip
@pytest.mark.parametrize("fresh", [True, False])
async def test_whatever_is_wrong_with_the_secret_is_mended(spoiled: dict[str, Any], fresh: bool) -> None:
    api, clock = cluster(), SetClock()
    one = replica(api, clock)
    await one.reconcile()
    api.objects[(SECRETS, NAMESPACE, SECRET)]["data"].update(spoiled)
    another = replica(api, clock) if fresh else one
    await another.reconcile()
    assert trusts(bundles(api).pop(), another.shown, clock.at)
    before = list(api.writes)
    await another.reconcile()
    assert api.writes == before


async def test_another_name_is_added_to_those_that_are_there() -> None:
    """Two replicas outside of the cluster, each asked under its own address, don't replace each other's certificate."""
    api, clock = cluster(), SetClock()
    one, other = replica(api, clock), replica(api, clock, names=SERVICE | {"192.0.2.7"})
    await one.reconcile()
    await other.reconcile()
    leaf = held(api).leaf
    assert leaf is not None and leaf.names == SERVICE | {"192.0.2.7"}
    before = secret_writes(api)
    await one.reconcile()
    assert secret_writes(api) == before


async def test_volcanos_own_secret_is_taken_over_without_a_gap() -> None:
    """It has no key of its authority, and RSA keys: the leaf serves on until a new authority is known."""
    clock = SetClock()
    api = cluster(_of_volcano())
    one = replica(api, clock)
    theirs = stored(api)
    await one.reconcile()
    assert one.shown == theirs.certificate
    (bundle,) = bundles(api)
    assert trusts(bundle, one.shown, clock.at)
    clock.at += SETTLING + timedelta(seconds=1)
    await one.reconcile()
    assert one.shown != theirs.certificate
    assert trusts(bundles(api).pop(), one.shown, clock.at)


def _of_volcano() -> Material:
    ca_key, key = (rsa.generate_private_key(65537, 2048) for _ in range(2))
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "volcano-admission-service.volcano-system.svc")])
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "volcano-admission-service")])

    def signed(subject: x509.Name, public: Any, *more: x509.ExtensionType) -> bytes:
        builder = (
            x509.CertificateBuilder().subject_name(subject).issuer_name(ca_name).public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(EPOCH - days(100)).not_valid_after(EPOCH + days(3550))
        )  # fmt: skip
        for extension in more:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(ca_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    return Material(
        bundle=signed(ca_name, ca_key.public_key(), x509.BasicConstraints(ca=True, path_length=None)),
        certificate=signed(
            name, key.public_key(), x509.SubjectAlternativeName([x509.DNSName(host) for host in SERVICE])
        ),
        key=private,
    )


async def test_what_else_is_in_the_secret_stays() -> None:
    api, clock = cluster(), SetClock()
    api.objects[(SECRETS, NAMESPACE, SECRET)]["data"]["note"] = "bWluZQ=="
    await replica(api, clock).reconcile()
    assert api.objects[(SECRETS, NAMESPACE, SECRET)]["data"]["note"] == "bWluZQ=="
    assert api.objects[(SECRETS, NAMESPACE, SECRET)]["type"] == "Opaque"


async def test_a_missing_right_is_told_with_what_grants_it() -> None:
    api = cluster()
    api.get = _forbidden  # type: ignore[method-assign,assignment]
    with pytest.raises(CertificateError, match=r"rbac/webhooks\.yaml"):
        await replica(api, SetClock()).reconcile()


async def test_a_configuration_that_was_made_anew_gets_its_bundle_and_a_change_in_between_isnt_undone() -> None:
    api, clock = cluster(), SetClock()
    one = replica(api, clock)
    await one.reconcile()
    name = NAMES[MUTATING][0]
    stale = api.objects[(MUTATING, "", name)]["metadata"]["resourceVersion"]
    fresh: dict[str, Any] = {
        "metadata": {"name": name},
        "webhooks": [{"name": "w", "clientConfig": {"url": "https://h"}}],
    }
    await api.replace(MUTATING, fresh)
    await one.managed.reconcile()  # its watch hasn't told yet
    assert "caBundle" not in api.objects[(MUTATING, "", name)]["webhooks"][0]["clientConfig"]
    await one.reconcile()
    assert api.objects[(MUTATING, "", name)]["webhooks"][0]["clientConfig"] == {
        "url": "https://h", "caBundle": base64.b64encode(stored(api).bundle).decode(),
    }  # fmt: skip
    assert api.objects[(MUTATING, "", name)]["metadata"]["resourceVersion"] != stale
    assert len(bundles(api)) == 1


async def test_without_configurations_it_serves_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    one = replica(cluster(configurations=False), SetClock())
    await one.reconcile()
    assert one.managed.trusted.is_set()
    assert "no webhook is called" in caplog.text


async def test_the_expiry_of_both_certificates_is_exported() -> None:
    reported: dict[str, float] = {}

    class Meter:
        def gauge(self, name: str, value: float, **labels: str) -> None:
            assert name == "certificate_expiration_timestamp_seconds"
            reported[labels["certificate"]] = value

    api, clock = cluster(), SetClock()
    one = replica(api, clock, meter=Meter())
    await one.reconcile()
    assert reported == {
        "leaf": (clock.now() + LEAF_LIFE).timestamp(), "authority": (clock.now() + AUTHORITY_LIFE).timestamp(),
    }  # fmt: skip
    before = dict(reported)
    clock.at += LEAF_LIFE * 0.7
    await one.reconcile()
    assert reported["leaf"] == (clock.now() + LEAF_LIFE).timestamp(), "the certificate was renewed"
    assert reported["authority"] == before["authority"]


async def test_what_is_made_is_what_a_strict_client_takes() -> None:
    """OpenSSL's strict mode asks for the extensions that RFC 5280 wants."""
    import socket
    import threading

    api, clock = cluster(), SetClock(at=_now())
    one = replica(api, clock, names=SERVICE | {"127.0.0.1"})
    await one.reconcile()
    client = ssl.create_default_context(cadata=stored(api).bundle.decode())
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    here, there = socket.socketpair()

    def serve() -> None:
        with there, one.context.tls.wrap_socket(there, server_side=True):
            pass

    serving = threading.Thread(target=serve)
    serving.start()
    with here, client.wrap_socket(here, server_hostname=next(iter(SERVICE))) as wrapped:
        assert wrapped.version() in ("TLSv1.2", "TLSv1.3")
    serving.join()


def _now() -> Any:
    from vcbatch.runtime.clock import SystemClock

    return SystemClock().now()


def test_our_configurations_are_counted() -> None:
    assert OURS == 13
