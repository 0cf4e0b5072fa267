"""Certificates that the service keeps itself, in one Secret that all its replicas share.

Every replica checks the Secret periodically, calls `rotation.decide` for what is due, writes it under the version that
it read (of several replicas, the first wins, and the others adopt its result), serves the leaf, and writes the bundle
into our webhook configurations. A crash after any step is harmless: the next check of any replica continues.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any, Final

from vcbatch.api.resources import SECRETS
from vcbatch.hosting.supervise import pause
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.interfaces.clock import Clock
from webhooks.certificates import rotation
from webhooks.certificates.context import CertificateError, Pair, ServingContext
from webhooks.certificates.issue import Material, carry_out, ends, read
from webhooks.certificates.rotation import Leaf
from webhooks.certificates.trust import Trust, TrustError

Json = dict[str, Any]
log = logging.getLogger(__name__)

CHECK_SECONDS: Final = 10.0
_AGAIN_SECONDS: Final = 0.5
_TRIES: Final = 5
_MOST_NAMES: Final = 16


class ManagedCertificates:
    """Keeps `context` up to date. `serving` is set once there is a leaf to serve, `trusted` once API servers trust its
    authority."""

    def __init__(
        self,
        api: Api,
        trust: Trust,
        *,
        namespace: str,
        secret: str,
        names: frozenset[str],
        context: ServingContext,
        clock: Clock,
    ) -> None:
        self._api = api
        self._trust = trust
        self._namespace = namespace
        self._secret = secret
        self._names = names
        self._context = context
        self._clock = clock
        self._last = Material()
        self._reported = ""
        self.serving = asyncio.Event()
        self.trusted = asyncio.Event()

    @property
    def bundle(self) -> bytes:
        """The authorities in PEM; empty before there are any."""
        return self._last.bundle

    async def keep(self) -> None:
        """Reconcile periodically, and whenever a configuration has changed, until cancelled."""
        await self._trust.synced()
        while True:
            self._trust.changed.clear()
            try:
                await self.reconcile()
                self._reported = ""
            except (ApiError, CertificateError, TrustError) as error:
                self._report_once(str(error))
            await self._pause()

    async def reconcile(self) -> None:
        """Reconcile once. Raises `ApiError`, `CertificateError` or `TrustError` where a step failed; the certificate in
        use is kept."""
        seen = self._trust.seen()  # before the Secret is read, which `put` relies on
        material = await self._agreed()
        self._show(material)
        await self._trust.put(material.bundle, seen=seen)
        if not self._trust.exist and not self.trusted.is_set():
            log.warning("this cluster has no webhook configuration of vcbatch, so no webhook is called")
        self.trusted.set()

    async def _agreed(self) -> Material:
        """The material that all replicas share, after what is due was done."""
        for _ in range(_TRIES):
            stored = await self._stored()
            material = self._material(stored)
            held, now = read(material), self._clock.now()
            plan = rotation.decide(held, now=now, names=self._names, trusted=self._trust.carries)
            unchanged = list(plan.keep) == [authority.fingerprint for authority in held.authorities]
            if unchanged and not plan.authority and not plan.leaf:
                return material
            made = carry_out(plan, material, now=now, names=self._names_beside(held.leaf))
            try:
                await self._write(stored, made)
            except ApiError as error:
                if error.conflict or error.already_exists or error.not_found:
                    continue  # another replica was first
                raise self._refused(error) from error
            log.info("certificates were created", extra={"authority": plan.authority, "leaf": plan.leaf})
            return made
        raise CertificateError(f"Secret {self._namespace}/{self._secret} is being changed all the time")

    def _names_beside(self, leaf: Leaf | None) -> frozenset[str]:
        """Our names, and those that the leaf has for replicas at other addresses."""
        names = self._names | (leaf.names if leaf is not None else frozenset())
        return names if len(names) <= _MOST_NAMES else self._names

    async def _stored(self) -> Json | None:
        try:
            return await self._api.get(SECRETS, self._secret, namespace=self._namespace)
        except ApiError as error:
            if error.not_found:
                return None
            raise self._refused(error) from error

    def _material(self, stored: Json | None) -> Material:
        """The stored material; where that was deleted, the certificate in use has to stay trusted until it is
        replaced."""
        material = Material.of_secret(stored) if stored is not None else Material()
        if read(material).authorities:
            return material
        return replace(self._last, authority_key=b"")

    async def _write(self, stored: Json | None, material: Material) -> None:
        metadata: Json = {"name": self._secret, "namespace": self._namespace}
        if stored is None:
            body: Json = {"metadata": metadata, "type": "Opaque", "data": material.data()}
            await self._api.create(SECRETS, body, namespace=self._namespace)
            return
        data = {**(stored.get("data") or {}), **material.data()}
        await self._api.replace(SECRETS, {**stored, "data": data}, namespace=self._namespace)

    def _refused(self, error: ApiError) -> Exception:
        if error.code != 403:
            return error
        return CertificateError(
            f"{error}; the role vcbatch-webhooks grants get and update of this Secret, which has to exist "
            "(helm/vcbatch/files/rbac/webhooks.yaml)"
        )

    def _show(self, material: Material) -> None:
        self._last = material
        pair = Pair(material.certificate, material.key)
        if pair != self._context.loaded:
            expires = self._context.load(pair)
            log.info("the certificate was replaced", extra={"expires": expires.isoformat()})
        if (authority_ends := ends(material.bundle)) is not None:
            self._context.expires("authority", authority_ends)
        self.serving.set()

    async def _pause(self) -> None:
        """Wait until the next check is due or a configuration has changed."""
        await pause(self._clock, CHECK_SECONDS, woken=self._trust.changed)
        await self._clock.sleep(_AGAIN_SECONDS)  # so that another writer of the configurations is not raced

    def _report_once(self, message: str) -> None:
        if message != self._reported:
            log.error("the certificates can't be managed: %s", message)
        self._reported = message
