"""Which kinds and documents a server has: everything there is, put together."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from vcbatch.local.apiserver.admission import Admission
from vcbatch.local.apiserver.kernel import Kernel
from vcbatch.local.apiserver.registry import Served
from vcbatch.seams import Clock, Random

Json = dict[str, Any]


def _optional(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(f"vcbatch.local.apiserver.{module}"), name, None)
    except ImportError:
        return None


def _built_in() -> list[Served]:
    from vcbatch.local.apiserver import kinds

    try:
        return kinds.served()
    except ImportError:
        found = []
        for name in [
            "pods",
            "services",
            "config",
            "cluster",
            "quotas",
            "events",
            "storage",
            "workloads",
            "batch",
            "networking",
            "policy",
            "rbac",
        ]:
            served = _optional(f"kinds.{name}", "served")
            found += [kinds._with_merge_keys(entry) for entry in served()] if served else []
        return found


def build(
    *,
    clock: Clock,
    random: Random,
    state_dir: Path | None = None,
    admission: Admission | None = None,
    root_ca: str = "",
) -> Kernel:
    crds = _optional("crds", "CrdRegistry")
    documents = [_optional("discovery", "documents"), _optional("openapi", "documents")]
    return Kernel(
        clock=clock,
        random=random,
        built_in=[*_built_in(), *_optional("crds", "served")()],
        custom=crds() if crds else None,
        documents=[one for one in documents if one],
        protobuf=_optional("protobuf", "decode"),
        admission=admission,
        state_dir=state_dir,
        root_ca=root_ca,
    )
