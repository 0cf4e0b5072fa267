"""Resource names that are probably misspelt: no node offers them, so that a limit on them has no effect."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Final

_NATIVE: Final = ("cpu", "memory", "ephemeral-storage", "pods")
_NATIVE_PREFIXES: Final = ("hugepages-", "attachable-volumes-")
_MEANT: Final = {
    "core": "cpu",
    "cores": "cpu",
    "mem": "memory",
    "ram": "memory",
    "disk": "ephemeral-storage",
    "storage": "ephemeral-storage",
    "gpu": "nvidia.com/gpu",
    "gpus": "nvidia.com/gpu",
    "nvidia.com": "nvidia.com/gpu",
    "nvidia": "nvidia.com/gpu",
}
_VENDORS: Final = {"nvidia": "nvidia.com", "amd": "amd.com", "intel": "intel.com", "habana": "habana.ai"}
_COUNTED: Final = ("gpu", "gaudi")


def doubt(name: str) -> str:
    """Why this resource name is probably a mistake, and a suggestion; empty where it isn't."""
    meant = _meant(name)
    if meant == name:
        return ""
    ask = f"did you mean {meant}?" if meant else "such a name needs a domain, as in nvidia.com/gpu"
    return f"{name[:63]!r} is no resource of Kubernetes; {ask}" if "/" not in name else f"{name[:63]!r}: {ask}"


def doubts(resources: Iterable[str], path: str) -> Iterator[str]:
    """One line for each doubtful name of the resources at a path."""
    for name in resources:
        if why := doubt(name):
            yield f"{path}: {why}"


def _meant(name: str) -> str:
    """The name that is probably meant: the same name where it is valid, and empty where no known name is similar."""
    domain, slash, rest = name.partition("/")
    if slash:
        known = _VENDORS.get(domain.lower(), domain)
        single = rest.removesuffix("s") if rest.removesuffix("s") in _COUNTED and known in _VENDORS.values() else rest
        return f"{known}/{single}"
    if name in _NATIVE or name.startswith(_NATIVE_PREFIXES):
        return name
    lower = name.lower()
    close = difflib.get_close_matches(lower, _NATIVE, n=1, cutoff=0.7)
    return _MEANT.get(lower) or (close[0] if close else "")
