"""Assembles a server from all kinds and documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from vcbatch.hosting.health import Health
from vcbatch.interfaces import Clock, Random
from vcbatch.local.apiserver import crds, discovery, kinds, openapi, protobuf
from vcbatch.local.apiserver.access import User
from vcbatch.local.apiserver.admission import AdmissionRequest
from vcbatch.local.apiserver.admission.webhooks import Services
from vcbatch.local.apiserver.kernel import Kernel
from vcbatch.local.apiserver.offload import Offload
from vcbatch.local.apiserver.tokens import ServiceAccountTokens


def build(
    *,
    clock: Clock,
    random: Random,
    state_dir: Path | None = None,
    known_version: int = 0,
    services: Services | None = None,
    notices: Callable[[AdmissionRequest], Sequence[str]] | None = None,
    root_ca: str = "",
    token_user: Callable[[str], User | None] = lambda _token: None,
    health: Health | None = None,
    tokens: ServiceAccountTokens | None = None,
    offload: Offload | None = None,
) -> Kernel:
    """A server without sockets, with every kind. With `state_dir` None no state outlives the process: for tests and
    simulation. `root_ca` is the certificate in every namespace's `kube-root-ca.crt`; `token_user` returns the user of a
    bearer token that isn't a service account's, for reviews; `tokens` issues and verifies those of service accounts,
    with a new key by default."""
    return Kernel(
        clock=clock,
        random=random,
        built_in=[*kinds.served(token_user, tokens), *crds.served()],
        custom=crds.CrdRegistry(),
        documents=[discovery.documents, openapi.documents],
        protobuf=protobuf.decode,
        services=services,
        notices=notices,
        state_dir=state_dir,
        known_version=known_version,
        root_ca=root_ca,
        health=health,
        offload=offload,
    )
