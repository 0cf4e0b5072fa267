"""A cluster of plain data for the certificates: the Secret, our webhook configurations, and replicas that look."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.fakes.api import FakeApi
from tests.support.virtual_time import EPOCH
from vcbatch.api.resources import SECRETS, Resource
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.metrics.meter import NoMeter
from webhooks.certificates.context import ServingContext
from webhooks.certificates.issue import Material, read
from webhooks.certificates.managed import ManagedCertificates
from webhooks.certificates.rotation import Held
from webhooks.certificates.trust import Trust
from webhooks.configurations import NAMES

NAMESPACE, SECRET = "volcano-system", "volcano-admission-secret"
SERVICE = frozenset({"volcano-admission-service.volcano-system.svc"})


@dataclass(kw_only=True)
class SetClock:
    """Time that passes when a test says so."""

    at: datetime = EPOCH

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return (self.at - EPOCH).total_seconds()

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("a look waits for nothing")


@dataclass(kw_only=True)
class Watched:
    """Informers whose news come when a test says so."""

    caches: dict[Resource, Cache[Any]] = field(default_factory=dict)

    def follow(self, resource: Resource) -> Cache[Any]:
        return self.caches.setdefault(resource, Cache())

    async def synced(self) -> None:
        return None


@dataclass(kw_only=True)
class Replica:
    """One running service."""

    api: Any
    clock: SetClock
    names: frozenset[str] = SERVICE
    meter: Any = field(default_factory=NoMeter)

    def __post_init__(self) -> None:
        self.watched = Watched()
        self.context = ServingContext(clock=self.clock, meter=self.meter)
        self.managed = ManagedCertificates(
            self.api, Trust(self.api, self.watched), namespace=NAMESPACE, secret=SECRET, names=self.names,  # type: ignore[arg-type]
            context=self.context, clock=self.clock,
        )  # fmt: skip

    async def hear(self) -> None:
        """What the watches have to tell by now."""
        for resource, cache in self.watched.caches.items():
            cache.replace(await self.api.list(resource))

    async def reconcile(self) -> None:
        await self.hear()
        await self.managed.reconcile()

    @property
    def shown(self) -> bytes:
        assert self.context.loaded is not None
        return self.context.loaded.certificate


def cluster(secret: Material | None = None, *, configurations: bool = True) -> FakeApi:
    """With our configurations as they are shipped, one of somebody else, and the Secret: empty unless given."""
    api = FakeApi()
    data = secret.data() if secret is not None else {}
    api.seed(SECRETS, {"metadata": {"name": SECRET, "namespace": NAMESPACE}, "type": "Opaque", "data": data})
    for resource, names in NAMES.items():
        for name in (*names, "of-somebody-else"):
            if configurations or name == "of-somebody-else":
                api.seed(resource, {"metadata": {"name": name}, "webhooks": [{"name": "w", "clientConfig": {}}]})
    return api


def stored(api: FakeApi) -> Material:
    """What is in the Secret."""
    return Material.of_secret(api.objects[(SECRETS, NAMESPACE, SECRET)])


def held(api: FakeApi) -> Held:
    return read(stored(api))


def bundles(api: FakeApi) -> set[bytes]:
    """The different bundles in our configurations."""
    return {
        base64.b64decode(webhook["clientConfig"].get("caBundle", ""))
        for resource, names in NAMES.items()
        for configuration in api.all(resource)
        if configuration["metadata"]["name"] in names
        for webhook in configuration["webhooks"]
    }


def trusts(bundle: bytes, certificate: bytes, now: datetime) -> bool:
    """As an API server judges: signed by an authority of the bundle, both valid now."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    leaf = x509.load_pem_x509_certificate(certificate)
    if not leaf.not_valid_before_utc <= now < leaf.not_valid_after_utc:
        return False
    for authority in x509.load_pem_x509_certificates(bundle) if bundle else ():
        if not authority.not_valid_before_utc <= now < authority.not_valid_after_utc:
            continue
        try:
            leaf.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return True
    return False


def days(number: float) -> timedelta:
    return timedelta(days=number)
