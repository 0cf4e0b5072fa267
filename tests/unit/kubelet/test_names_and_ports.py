"""Addresses, hosts files and ports: who is called what, and that nobody is called the same."""

from __future__ import annotations

import json
import socket
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcbatch.local.kubelet.hosts import write_in_place
from vcbatch.local.kubelet.names import Addresses, PodName, hosts_file, peers, pod_name, replace_names
from vcbatch.local.kubelet.ports import FIRST_PORT, PortTable, port_is_free

OWN = PodName(namespace="ns", hostname="j-w-0", subdomain="j")


@settings(max_examples=50)
@given(st.sets(st.text(max_size=20), max_size=60))
def test_addresses_are_distinct_and_follow_from_the_name(keys: set[str]) -> None:
    table, other = Addresses(), Addresses()
    given_out = {key: table.take(key) for key in keys}
    assert len(set(given_out.values())) == len(keys)
    assert all(table.take(key) == address for key, address in given_out.items())
    for address in given_out.values():
        first, second, _, last = (int(part) for part in address.split("."))
        assert (first, second // 64, 0 < last < 255) == (127, 1, True)
    for key in keys:
        table.release(key)
        other.take(key)
    assert {key: table.take(key) for key in keys} == given_out


def test_an_address_that_was_held_before_is_given_again() -> None:
    table = Addresses()
    assert table.take("a", wanted="127.64.3.3") == "127.64.3.3"
    assert table.take("b", wanted="127.64.3.3") != "127.64.3.3"


def test_a_long_pod_name_is_cut_to_a_host_name() -> None:
    name = pod_name({"metadata": {"name": "x" * 62 + "-y", "namespace": "ns"}, "spec": {}})
    assert name.hostname == "x" * 62


def test_a_hosts_file_has_the_pod_and_for_libnss_wrapper_mapped_lines() -> None:
    text = hosts_file(
        own=OWN, address="127.64.0.1", common=["127.64.0.2\tm"], host_lines=["127.0.0.1\tlocalhost"], mapped=True
    )
    lines = text.splitlines()
    assert lines[:3] == ["127.0.0.1\tlocalhost", "127.64.0.1\tj-w-0.j.ns.svc.cluster.local j-w-0", "127.64.0.2\tm"]
    assert [line.removeprefix("::ffff:") for line in lines[3:]] == lines[:3]


@settings(max_examples=50)
@given(st.lists(st.binary(max_size=200), min_size=1, max_size=5))
def test_rewriting_in_place_keeps_the_file(contents: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "hosts"
        path.touch()
        inode = path.stat().st_ino
        for content in contents:
            write_in_place(path, content)
            assert path.read_bytes() == content
        assert path.stat().st_ino == inode


def test_peers_are_the_names_of_ones_own_gang() -> None:
    variables = {
        "MASTER_ADDR": "j-master-0.j",
        "VC_WORKER_HOSTS": "j-w-0.j,j-w-1.j,other.job",
        "TF_CONFIG": '{"cluster":{"ps":["j-ps-0.j:2222"]}}',
        "UNRELATED": "j-x-0.j",
    }
    assert peers(variables, OWN) == {"j-master-0.j", "j-w-0.j", "j-w-1.j", "j-ps-0.j"}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("j-m-0.j", "IP"),
        ("j-m-0.j:29500", "IP:29500"),
        ("--rdzv-endpoint=j-m-0.j:29500", "--rdzv-endpoint=IP:29500"),
        ("xj-m-0.j", "xj-m-0.j"),
        ("j-m-0.json", "j-m-0.json"),
        ("j-m-0.j.py", "j-m-0.j.py"),
        ("a,j-m-0.j,b", "a,IP,b"),
        ("see j-m-0.j.", "see IP."),
    ],
)
def test_only_whole_names_are_replaced(text: str, want: str) -> None:
    assert replace_names(text, {"j-m-0.j": "IP"}) == want


def table(path: Path, *, busy: tuple[int, ...] = ()) -> PortTable:
    return PortTable(path / "ports.json", is_free=lambda port: port not in busy)


def master(addr: str = "m", port: str = "23456") -> dict[str, str]:
    return {"MASTER_ADDR": addr, "MASTER_PORT": port}


def test_the_port_asked_for_is_kept_while_it_is_free(tmp_path: Path) -> None:
    ports = table(tmp_path)
    assert ports.rewrite("one", master()) == (master(), [])
    given_, changes = ports.rewrite("two", master())
    assert given_["MASTER_PORT"] == str(FIRST_PORT)
    assert [(c.asked, c.given) for c in changes] == [(23456, FIRST_PORT)]
    assert ports.rewrite("two", master())[0] == given_, "the same for every pod of the gang"


def test_a_port_taken_by_somebody_else_is_not_given(tmp_path: Path) -> None:
    rewritten, _ = table(tmp_path, busy=(23456, FIRST_PORT)).rewrite("one", master())
    assert rewritten["MASTER_PORT"] == str(FIRST_PORT + 1)


def test_what_was_given_survives_a_restart_and_ends_with_the_gang(tmp_path: Path) -> None:
    table(tmp_path).rewrite("one", master())
    given_, _ = table(tmp_path).rewrite("two", master())
    again = table(tmp_path)
    assert again.rewrite("two", master())[0] == given_
    again.retain({"two"})
    assert table(tmp_path).rewrite("three", master())[0]["MASTER_PORT"] == "23456"


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["h0", "h1"]), st.integers(1, 65535)), max_size=25))
def test_no_two_places_ever_share_a_port(asked: list[tuple[str, str, int]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        ports = table(Path(directory))
        given_: dict[tuple[str, str, int], str] = {}
        for group, host, port in asked:
            value = ports.rewrite(group, master(host, str(port)))[0]["MASTER_PORT"]
            assert given_.setdefault((group, host, port), value) == value
        assert len(set(given_.values())) == len(given_)


@pytest.mark.parametrize("text", ["", "not json", "[]", '{"cluster": 3}', '{"task": {}}', '{"cluster": {"ps": "x"}}'])
def test_a_tf_config_that_is_none_stays_as_it_is(tmp_path: Path, text: str) -> None:
    rewritten, changes = table(tmp_path).rewrite("g", {"TF_CONFIG": text})
    assert changes == []
    assert rewritten["TF_CONFIG"] == text or json.loads(rewritten["TF_CONFIG"]) == json.loads(text)


def test_a_listener_anywhere_makes_a_port_taken() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        assert not port_is_free(listener.getsockname()[1])


@pytest.mark.parametrize(
    "config", ['{"cluster":{"w":["w-0:²"]}}', "[" * 100_000, '{"cluster":{"w":["w-0:' + "9" * 5000 + '"]}}']
)
def test_what_is_no_port_in_tf_config_is_left_to_the_program(tmp_path: Path, config: str) -> None:
    table = PortTable(tmp_path / "ports.json", is_free=lambda _: True)
    assert table.rewrite("gang", {"TF_CONFIG": config})[0]["TF_CONFIG"].replace("\\u00b2", "²") == config


def test_a_large_cluster_asks_for_each_port_once(tmp_path: Path) -> None:
    asked: list[int] = []

    def is_free(port: int) -> bool:
        asked.append(port)
        return port != 5000

    table = PortTable(tmp_path / "ports.json", is_free=is_free)
    addresses = [f"h{number}:5000" for number in range(2000)]
    config = json.dumps({"cluster": {"w": addresses}})
    given = json.loads(table.rewrite("gang", {"TF_CONFIG": config})[0]["TF_CONFIG"])["cluster"]["w"]
    assert len({address.rpartition(":")[2] for address in given}) == 2000
    assert len(asked) == 4000, "the port that is wanted, and one of the range, for each address"
