"""Variables, commands and names as Kubernetes makes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcbatch.local.kubelet import environment, volumes
from vcbatch.local.kubelet.config import inherited_environment
from vcbatch.local.kubelet.environment import ConfigError, PodFacts, expand

FACTS = PodFacts(node_name="n", host_ip="127.0.0.1", pod_ip="127.64.0.1", allocatable={"cpu": "8", "memory": "1Gi"})
POD = {"metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": {"containers": []}}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("$(A)", "1"),
        ("$(A)$(B)", "12"),
        ("$(NONE)", "$(NONE)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$(A)", "$$(A)"),
        ("$(A", "$(A"),
        ("$A", "$A"),
        ("end$", "end$"),
        ("a$$b", "a$b"),
        ("$()", "$()"),
        ("$(A)$(", "1$("),
        ("$($(A))", "$($(A))"),
    ],
)
def test_expansion(text: str, want: str) -> None:
    assert expand(text, {"A": "1", "B": "2"}) == want


@given(st.text(alphabet="$()AB x", max_size=40))
def test_expansion_leaves_text_without_dollars_alone_and_doubled_dollars_are_one(text: str) -> None:
    assert expand(text.replace("$", ""), {"A": "1"}) == text.replace("$", "")
    assert expand(text.replace("$", "$$"), {"A": "1"}) == text


def build(container: dict, **objects: dict) -> dict[str, str]:
    return environment.build(
        pod=POD,
        container={"name": "c", **container},
        facts=FACTS,
        config_map=objects.get("config_maps", {}).get,
        secret=objects.get("secrets", {}).get,
    )


def test_later_variables_refer_to_earlier_ones_only() -> None:
    env = [{"name": "B", "value": "$(A)"}, {"name": "A", "value": "1"}, {"name": "C", "value": "$(A)"}]
    assert build({"env": env}) == {"B": "$(A)", "A": "1", "C": "1"}


def test_own_variables_win_over_those_of_a_source() -> None:
    container = {"envFrom": [{"configMapRef": {"name": "m"}}], "env": [{"name": "K", "value": "own"}]}
    assert build(container, config_maps={"m": {"K": "theirs", "L": "l"}}) == {"K": "own", "L": "l"}


@pytest.mark.parametrize(
    ("reference", "want"),
    [
        ({"resource": "limits.cpu"}, "8"),
        ({"resource": "limits.memory", "divisor": "1Mi"}, "1024"),
        ({"resource": "requests.cpu", "divisor": "1m"}, "1500"),
        ({"resource": "requests.cpu"}, "2"),
        ({"resource": "requests.memory"}, "0"),
    ],
)
def test_resource_fields_are_rounded_up_and_default_to_the_node(reference: dict, want: str) -> None:
    container = {
        "resources": {"requests": {"cpu": "1500m"}},
        "env": [{"name": "R", "valueFrom": {"resourceFieldRef": reference}}],
    }
    assert build(container)["R"] == want


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"configMapKeyRef": {"name": "m", "key": "k"}}, 'configmap "m" not found'),
        ({"secretKeyRef": {"name": "s", "key": "k"}}, "couldn't find key k in Secret ns/s"),
        ({"fieldRef": {"fieldPath": "spec.nope"}}, "fieldRef: unsupported fieldPath 'spec.nope'"),
        ({"resourceFieldRef": {"resource": "cpu"}}, "resourceFieldRef: unsupported resource 'cpu'"),
    ],
)
def test_what_is_missing_is_named(source: dict, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build({"env": [{"name": "X", "valueFrom": source}]}, secrets={"s": {}})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("resources", "want"),
    [
        ({}, None),
        ({"requests": {"cpu": "2"}}, 2),
        ({"requests": {"cpu": "100m"}}, 1),
        ({"limits": {"cpu": "2500m"}}, 3),
    ],
)
def test_threads_fit_the_request(resources: dict, want: int | None) -> None:
    assert environment.thread_count({"resources": resources}) == want


def test_containers_inherit_what_programs_need_and_no_credentials() -> None:
    shell = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "CUDA_HOME": "/cuda",
        "CUDA_VISIBLE_DEVICES": "0",
        "KUBECONFIG": "/home/me/.kube/config",
        "AWS_SECRET_ACCESS_KEY": "x",
        "GITHUB_TOKEN": "x",
    }
    assert inherited_environment(shell) == {"PATH": "/bin", "LC_ALL": "C", "CUDA_HOME": "/cuda"}


@pytest.mark.parametrize(
    ("given", "inherited"),
    [
        ("http://proxy:3128", "http://proxy:3128"),
        ("http://me:secret@proxy:3128/", "http://proxy:3128/"),
        ("me:secret@proxy:3128", "proxy:3128"),
        ("HTTP://me:s/e@cret@proxy", "HTTP://proxy"),
        ("", ""),
    ],
)
@pytest.mark.parametrize("name", ["HTTPS_PROXY", "http_proxy"])
def test_proxies_are_inherited_without_their_passwords(name: str, given: str, inherited: str) -> None:
    assert inherited_environment({name: given}) == {name: inherited}


def test_binary_data_of_a_config_map_is_for_files_only() -> None:
    contents = volumes.config_map_contents({"data": {"a": "1"}, "binaryData": {"b": "/wA="}})
    assert contents == {"a": b"1", "b": b"\xff\x00"}
    assert volumes.as_text({"m": contents}.get)("m") == {"a": "1"}


def test_a_value_that_no_variable_can_have_is_named() -> None:
    with pytest.raises(ConfigError, match="environment variable KEY has a NUL byte"):
        build({"envFrom": [{"secretRef": {"name": "s"}}]}, secrets={"s": {"KEY": "a\0b"}})
