"""Which connections pods make and take, and whether NetworkPolicies allow them.

The network of the tests enforces no policy; what a policy would keep out is found in the nodes' tables of connections,
which also know those that are over already.
"""

from __future__ import annotations

import ipaddress
import re
import subprocess
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from tests.nodes.bed import Bed

Json = dict[str, Any]

_PAIR = re.compile(r"(src|dst|sport|dport)=(\S+)")
_SECONDS = 2.0


@dataclass(frozen=True, slots=True, order=True)
class Connection:
    """Who began it, and whom it reached: behind a Service's address, the one that answered."""

    protocol: str
    source: str
    target: str
    port: int


def parse(line: str) -> Connection | None:
    """One line of `conntrack -L`; None where it isn't about TCP, UDP or SCTP."""
    protocol = line.split(maxsplit=1)[0].upper() if line.strip() else ""
    pairs = _PAIR.findall(line)
    if protocol not in ("TCP", "UDP", "SCTP") or len(pairs) != 8:
        return None
    asked, answered = dict(pairs[:4]), dict(pairs[4:])
    return Connection(protocol, asked["src"], answered["src"], int(answered["sport"]))


@dataclass(frozen=True, slots=True)
class Seen:
    """A connection of a pod: `made` by it, else taken."""

    labels: frozenset[tuple[str, str]]
    connection: Connection
    made: bool


class Watch:
    """Reads the nodes' tables again and again, from `__enter__` to `__exit__`, for the pods of one namespace.

    Addresses are used again, so that a connection is its pod's only if the pod had the address when it was read.
    """

    def __init__(self, bed: Bed, namespace: str) -> None:
        self._bed = bed
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._seen: set[Seen] = set()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="connections")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def seen(self) -> set[Seen]:
        """All connections so far."""
        self._read()
        with self._lock:
            return set(self._seen)

    def _run(self) -> None:
        while not self._ended.wait(_SECONDS):
            try:
                self._read()
            except (AssertionError, OSError, subprocess.TimeoutExpired):
                continue  # the API server or a node is busy

    def _read(self) -> None:
        pods = {
            pod["status"]["podIP"]: frozenset(pod["metadata"]["labels"].items())
            for pod in self._bed.plane.call("GET", self._pods)["items"]
            if pod["status"].get("phase") == "Running" and pod["status"].get("podIP")
        }
        for node in self._bed.nodes.values():
            try:
                table = node.run("conntrack", "-L").stdout
            except (OSError, IndexError, AssertionError):
                continue  # the node is off
            for connection in filter(None, map(parse, table.splitlines())):
                for address, made in ((connection.source, True), (connection.target, False)):
                    if address in pods:
                        with self._lock:
                            self._seen.add(Seen(pods[address], connection, made))


def allowed(policies: Iterable[Json], labels: Mapping[str, str], connection: Connection, *, egress: bool) -> bool:
    """Whether these NetworkPolicies let a pod with these labels make (`egress`) or take that connection.

    Raises ValueError for peers by selectors, which none of ours has.
    """
    direction, rules, peers = ("Egress", "egress", "to") if egress else ("Ingress", "ingress", "from")
    about = [
        policy["spec"]
        for policy in policies
        if direction in policy["spec"]["policyTypes"] and _selects(policy["spec"]["podSelector"], labels)
    ]
    other = connection.target if egress else connection.source
    return not about or any(
        _has_port(rule.get("ports"), connection) and _has_peer(rule.get(peers), other)
        for spec in about
        for rule in spec.get(rules) or ()
    )


def _selects(selector: Json, labels: Mapping[str, str]) -> bool:
    if selector.get("matchExpressions"):
        raise ValueError("matchExpressions of a NetworkPolicy")
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())


def _has_port(ports: list[Json] | None, connection: Connection) -> bool:
    return not ports or any(
        each.get("protocol", "TCP") == connection.protocol and each.get("port") in (None, connection.port)
        for each in ports
    )


def _has_peer(peers: list[Json] | None, address: str) -> bool:
    if not peers:
        return True
    for peer in peers:
        if set(peer) != {"ipBlock"} or peer["ipBlock"].get("except"):
            raise ValueError(f"a peer of a NetworkPolicy: {peer}")
        if ipaddress.ip_address(address) in ipaddress.ip_network(peer["ipBlock"]["cidr"]):
            return True
    return False
