"""Services: addresses that are handed out, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.apiserver.core.servers import server, virtual
from tests.unit.apiserver.kinds.support import Json, causes, made, rows

SERVICES = "/api/v1/namespaces/default/services"


def service(name: str = "s", **spec: Any) -> Json:
    spec.setdefault("ports", [{"port": 80}])
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


@virtual
async def test_a_service_gets_an_address_of_its_own_and_keeps_it() -> None:
    async with server() as client:
        first = await made(client, SERVICES, service("a"))
        second = await made(client, SERVICES, service("b"))
        addresses = {one["spec"]["clusterIP"] for one in (first, second)}
        assert len(addresses) == 2
        assert first["spec"]["clusterIPs"] == [first["spec"]["clusterIP"]]
        # An update that says nothing of the address keeps it.
        replaced = await client.put(f"{SERVICES}/a", service("a", ports=[{"port": 81}]))
        assert replaced.body["spec"]["clusterIP"] == first["spec"]["clusterIP"]
        changed = await client.merge(f"{SERVICES}/a", {"spec": {"clusterIP": "10.96.0.77"}})
        assert causes(changed) == ['spec.clusterIPs[0]: Invalid value: ["10.96.0.77"]: may not change once set']


@virtual
async def test_node_ports_come_and_go_with_the_type() -> None:
    async with server() as client:
        created = await made(
            client, SERVICES, service(type="NodePort", ports=[{"name": "a", "port": 1}, {"name": "b", "port": 2}])
        )
        ports = [port["nodePort"] for port in created["spec"]["ports"]]
        assert len(set(ports)) == 2
        assert all(30000 <= port < 32768 for port in ports)
        assert created["spec"]["externalTrafficPolicy"] == "Cluster"
        back = (await client.merge(f"{SERVICES}/s", {"spec": {"type": "ClusterIP"}})).body["spec"]
        assert not any("nodePort" in port for port in back["ports"])
        assert "externalTrafficPolicy" not in back


@pytest.mark.parametrize(
    ("spec", "families", "policy"),
    [
        ({"clusterIP": "None", "selector": {"a": "b"}}, ["IPv4"], "SingleStack"),
        ({"clusterIP": "None"}, ["IPv4", "IPv6"], "RequireDualStack"),
        ({}, ["IPv4"], "SingleStack"),
    ],
)
@virtual
async def test_families(spec: Json, families: list[str], policy: str) -> None:
    async with server() as client:
        created = (await made(client, SERVICES, service(**spec)))["spec"]
        assert (created["ipFamilies"], created["ipFamilyPolicy"]) == (families, policy)


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        ({"ports": []}, ["spec.ports: Required value"]),
        (
            {"ports": [{"port": 1}, {"port": 2, "name": "x"}]},
            ["spec.ports[0].name: Required value"],
        ),
        (
            {"ports": [{"port": 1, "name": "x"}, {"port": 2, "name": "x"}]},
            ['spec.ports[1].name: Duplicate value: "x"'],
        ),
        (
            {"ports": [{"port": 1, "targetPort": "No-Such"}]},
            [
                (
                    'spec.ports[0].targetPort: Invalid value: "No-Such": must contain only alpha-numeric characters '
                    "(a-z, 0-9), and hyphens (-)"
                )
            ],
        ),
        (
            {"type": "Other"},
            [
                (
                    'spec.type: Unsupported value: "Other": supported values: "ClusterIP", "ExternalName", '
                    '"LoadBalancer", "NodePort"'
                )
            ],
        ),
        (
            {"type": "NodePort", "clusterIP": "None"},
            ["spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"],
        ),
        ({"type": "ExternalName", "ports": None}, ["spec.externalName: Required value"]),
        (
            {"ports": [{"port": 1, "nodePort": 30001}]},
            ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
        ),
        (
            {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}}},
            [
                (
                    "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 0: must be greater than 0 and "
                    "less than 86400"
                )
            ],
        ),
        (
            {"clusterIP": "10.0.0.1"},
            [
                (
                    'spec.clusterIPs: Invalid value: ["10.0.0.1"]: failed to allocate IP 10.0.0.1: the provided IP '
                    "(10.0.0.1) is not in the valid range. The range of valid IPs is 10.96.0.0/16"
                )
            ],
        ),
    ],
)
@virtual
async def test_faults(spec: Json, errors: list[str]) -> None:
    async with server() as client:
        assert causes(await client.post(SERVICES, service(**spec))) == errors


@virtual
async def test_an_address_is_given_once() -> None:
    async with server() as client:
        taken = (await made(client, SERVICES, service("a")))["spec"]["clusterIP"]
        answer = await client.post(SERVICES, service("b", clusterIP=taken))
        assert causes(answer)[0].endswith("provided IP is already allocated")


@virtual
async def test_rows() -> None:
    async with server() as client:
        await made(client, SERVICES, service("a", type="NodePort", selector={"k": "v"}))
        await made(client, SERVICES, service("b", type="ExternalName", externalName="x.example", ports=None))
        await made(client, SERVICES, service("c", type="LoadBalancer", clusterIP="10.96.0.9"))
        await made(client, SERVICES, service("d", clusterIP="None", ports=None))
        shown = await rows(client, SERVICES)
    keys = ("Type", "Cluster-IP", "External-IP", "Selector")
    assert [[row[key] for key in keys] for row in shown] == [
        ["NodePort", "10.96.0.2", "<none>", "k=v"],
        ["ExternalName", "<none>", "x.example", "<none>"],
        ["LoadBalancer", "10.96.0.9", "<pending>", "<none>"],
        ["ClusterIP", "None", "<none>", "<none>"],
    ]
    assert shown[0]["Port(s)"] == "80:30000/TCP"
    assert shown[3]["Port(s)"] == "<none>"
