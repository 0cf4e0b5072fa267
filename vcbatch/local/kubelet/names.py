"""Addresses and host names of pods, and their hosts files.

Every pod has an address of its own in 127.0.0.0/8, which needs no set-up and no privileges on Linux. The address of a
pod with a hostname and a subdomain is derived from its name alone: it is known before the pod exists and stays the same
when the pod is recreated.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vcbatch.api.names import ENV_MASTER_ADDR, ENV_MPI_HOST, ENV_TF_CONFIG

Json = dict[str, Any]

_HOST_LISTS = re.compile(r"VC_[A-Z0-9_]+_HOSTS")
_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_CLUSTER_DOMAIN = "svc.cluster.local"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodName:
    """The host names of a pod: `hostname` alone, and `hostname.subdomain` where it has a subdomain."""

    namespace: str
    hostname: str
    subdomain: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.hostname}.{self.subdomain}"

    def aliases(self, *, seen_from: str) -> list[str]:
        """All names by which a pod of the namespace `seen_from` reaches this one, the fully qualified first."""
        if not self.subdomain:
            return []
        short = f"{self.hostname}.{self.subdomain}"
        return _aliases(short, self.namespace, seen_from=seen_from)


def _aliases(short: str, namespace: str, *, seen_from: str) -> list[str]:
    names = [f"{short}.{namespace}.{_CLUSTER_DOMAIN}", f"{short}.{namespace}.svc", f"{short}.{namespace}"]
    return [*names, short] if namespace == seen_from else names


def pod_name(pod: Json) -> PodName:
    """The pod's names, as Kubernetes derives them from its specification."""
    spec, metadata = pod["spec"], pod["metadata"]
    hostname = (spec.get("hostname") or metadata["name"])[:63].rstrip("-.")
    return PodName(namespace=metadata["namespace"], hostname=hostname, subdomain=spec.get("subdomain") or "")


class Addresses:
    """Assigns addresses. `shared` is the single address of all pods where this machine has no others."""

    def __init__(self, *, shared: str | None = None) -> None:
        self._shared = shared
        self._by_key: dict[str, str] = {}
        self._taken: dict[str, str] = {}

    def take(self, key: str, *, wanted: str | None = None) -> str:
        """The address for `key`: its current one, `wanted` (its former one) if free, or one from its hash."""
        if self._shared:
            return self._shared
        if key in self._by_key:
            return self._by_key[key]
        address = wanted if wanted and wanted not in self._taken else self._probe(key)
        self._by_key[key] = address
        self._taken[address] = key
        return address

    def release(self, key: str) -> None:
        address = self._by_key.pop(key, None)
        if address is not None:
            del self._taken[address]

    def _probe(self, key: str) -> str:
        for attempt in range(1 << 22):
            digest = hashlib.sha256(f"{key}#{attempt}".encode()).digest()
            # 127.64.0.0/10: clear of 127.0.0.1, of Debian's 127.0.1.1 and of systemd-resolved's 127.0.0.53.
            address = f"127.{64 + digest[0] % 64}.{digest[1]}.{1 + digest[2] % 254}"
            if address not in self._taken:
                return address
        raise OverflowError("every address of 127.64.0.0/10 is in use")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The name and selector of a Service."""

    namespace: str
    name: str
    selector: Mapping[str, str]
    publish_not_ready: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The data of a pod for the hosts files of others."""

    name: PodName
    address: str
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    ready: bool = False


def service_of(obj: Json) -> Service | None:
    """The names that a Service object gives to pods; None for one without a selector."""
    selector = obj["spec"].get("selector")
    if not selector:
        return None
    return Service(
        namespace=obj["metadata"]["namespace"],
        name=obj["metadata"]["name"],
        selector=selector,
        publish_not_ready=bool(obj["spec"].get("publishNotReadyAddresses")),
    )


def common_lines(*, namespace: str, hosts: Sequence[Host], services: Iterable[Service]) -> list[str]:
    """The lines that the hosts files of all pods of a namespace share."""
    lines: list[str] = []
    for host in hosts:
        aliases = host.name.aliases(seen_from=namespace)
        if aliases:
            lines.append(f"{host.address}\t{' '.join(aliases)}")
    for service in services:
        names = " ".join(_aliases(service.name, service.namespace, seen_from=namespace))
        lines += [f"{host.address}\t{names}" for host in hosts if _selects(service, host)]
    return lines


def _selects(service: Service, host: Host) -> bool:
    if service.namespace != host.name.namespace or not (host.ready or service.publish_not_ready):
        return False
    return all(host.labels.get(key) == value for key, value in service.selector.items())


def hosts_file(
    *,
    own: PodName,
    address: str,
    common: Sequence[str],
    host_lines: Sequence[str],
    aliases: Sequence[Json] = (),
    mapped: bool = False,
) -> str:
    """A pod's hosts file: this machine's own lines, the pod itself, then all others.

    `mapped` adds every line a second time with an IPv4-mapped IPv6 address: libnss_wrapper doesn't implement
    AI_V4MAPPED, without which PyTorch's TCPStore finds no address.
    """
    names = [*own.aliases(seen_from=own.namespace)[:1], own.hostname]
    # No comments and no empty lines: libnss_wrapper 1.1 supports neither.
    lines = [*host_lines, f"{address}\t{' '.join(names)}", *common]
    lines += [f"{alias['ip']}\t{' '.join(alias.get('hostnames') or ())}" for alias in aliases]
    if mapped:
        lines += [f"::ffff:{line}" for line in lines if line[:1].isdigit() and ":" not in line.split()[0]]
    return "\n".join(lines) + "\n"


def peers(variables: Mapping[str, str], own: PodName) -> set[str]:
    """Host names of the pod's own gang (`host.subdomain`) that its environment refers to."""
    if not own.subdomain:
        return set()
    pattern = re.compile(rf"(?<![\w.-]){_LABEL}\.{re.escape(own.subdomain)}(?![\w-]|\.\w)")
    found: set[str] = set()
    for name, value in variables.items():
        if name in (ENV_MASTER_ADDR, ENV_MPI_HOST, ENV_TF_CONFIG) or _HOST_LISTS.fullmatch(name):
            found.update(pattern.findall(value))
    return found


def replace_names(text: str, addresses: Mapping[str, str]) -> str:
    """`text` with whole host names replaced by their addresses: how pods find each other in plain mode."""
    if not addresses:
        return text
    names = "|".join(re.escape(name) for name in sorted(addresses, key=len, reverse=True))
    return re.sub(rf"(?<![\w.-])({names})(?![\w-]|\.\w)", lambda match: addresses[match[1]], text)
