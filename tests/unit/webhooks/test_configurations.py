"""The webhook configurations as shipped: what is asked, how, and what happens when nobody answers."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from vcbatch.api.admission import Operation
from vcbatch.api.resources import PODS
from webhooks.configurations import NAMES, pointed, read
from webhooks.paths import PATHS
from webhooks.printing import main

FOLDER = Path(__file__).parents[3] / "helm/vcbatch/files/webhooks"
SHIPPED = read(FOLDER)


def test_each_path_has_one_configuration_with_volcanos_name() -> None:
    names = {document["metadata"]["name"] for document in SHIPPED}
    assert names == {f"volcano-admission-service{path.replace('/', '-')}" for path in PATHS}
    assert len(names) == len(SHIPPED)
    assert len({webhook["name"] for document in SHIPPED for webhook in document["webhooks"]}) == len(SHIPPED)


def test_what_is_asked_is_what_is_served() -> None:
    for document in SHIPPED:
        (webhook,) = document["webhooks"]
        (rule,) = webhook["rules"]
        path = PATHS[webhook["clientConfig"]["service"]["path"]]
        resource = path.resource
        assert document["kind"].startswith("Mutating") is path.mutates
        assert {Operation(operation) for operation in rule["operations"]} == path.operations
        assert (rule["apiGroups"], rule["apiVersions"]) == ([resource.group], [resource.version])
        assert rule["resources"] == [resource.plural], "no subresources: status is nobody's to judge"
        assert rule["scope"] == ("Namespaced" if resource.namespaced else "Cluster")


def test_admission_never_takes_a_cluster_down() -> None:
    for document in SHIPPED:
        (webhook,) = document["webhooks"]
        pods = webhook["rules"][0]["resources"] == [PODS.plural]
        assert webhook["failurePolicy"] == ("Ignore" if pods else "Fail")
        conditions = [condition["name"] for condition in webhook.get("matchConditions", ())]
        few = conditions in (["new-or-moved"], ["to-a-queue"])
        assert bool(conditions) is (pods or few), "other schedulers' pods aren't asked about"
        assert (webhook["timeoutSeconds"], webhook["sideEffects"]) == (5, "None")
        assert webhook["matchPolicy"] == "Equivalent"
        if conditions == ["to-a-queue"]:
            assert "namespaceSelector" not in webhook, "one from any namespace closes any queue"
            continue
        (expression,) = webhook["namespaceSelector"]["matchExpressions"]
        assert (expression["operator"], set(expression["values"])) == ("NotIn", {"volcano-system", "kube-system"})


def test_pointing_leaves_the_originals_alone() -> None:
    by_url = pointed(SHIPPED, ca_bundle=b"PEM", url="https://127.0.0.1:1/")
    assert by_url[0]["webhooks"][0]["clientConfig"] == {
        "url": f"https://127.0.0.1:1{SHIPPED[0]['webhooks'][0]['clientConfig']['service']['path']}",
        "caBundle": base64.b64encode(b"PEM").decode(),
    }
    by_service = pointed(SHIPPED, ca_bundle=b"PEM")
    assert (
        by_service[0]["webhooks"][0]["clientConfig"]["service"] == SHIPPED[0]["webhooks"][0]["clientConfig"]["service"]
    )
    assert "caBundle" not in SHIPPED[0]["webhooks"][0]["clientConfig"]


def asked(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_the_command_prints_what_kubectl_applies(tmp_path: Path) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_bytes(b"PEM")
    done = asked(str(FOLDER), "--ca-file", str(authority), "--url", "https://127.0.0.1:8443")
    assert done.exit_code == 0
    expected = pointed(SHIPPED, ca_bundle=b"PEM", url="https://127.0.0.1:8443")
    assert list(yaml.safe_load_all(done.output)) == expected


def test_without_an_authority_the_service_says_it_itself() -> None:
    done = asked(str(FOLDER), "--url", "https://127.0.0.1:8443")
    assert done.exit_code == 0
    clients = [webhook["clientConfig"] for made in yaml.safe_load_all(done.output) for webhook in made["webhooks"]]
    assert len(clients) == len(SHIPPED)
    assert not any("caBundle" in client for client in clients)


def test_cert_manager_is_told_whose_authority_to_write() -> None:
    done = asked(str(FOLDER), "--cert-manager", "volcano-system/vcbatch-webhooks")
    assert done.exit_code == 0
    for made in yaml.safe_load_all(done.output):
        assert made["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": "volcano-system/vcbatch-webhooks"}
        assert all("caBundle" not in webhook["clientConfig"] for webhook in made["webhooks"])


@pytest.mark.parametrize("given", ["vcbatch-webhooks", "a/b/c", "/b", "a/"])
def test_a_certificate_has_a_namespace(given: str) -> None:
    done = asked(str(FOLDER), "--cert-manager", given)
    assert done.exit_code == 2 and "isn't NAMESPACE/NAME" in done.output


def test_two_who_would_write_the_authority_are_one_too_many(tmp_path: Path) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_bytes(b"PEM")
    done = asked(str(FOLDER), "--cert-manager", "a/b", "--ca-file", str(authority))
    assert done.exit_code == 2 and "not with --ca-file" in done.output


def test_the_names_that_we_write_to_are_those_that_are_shipped_and_granted() -> None:
    """The role grants patches by name; a configuration that it forgets would never get its authority."""
    shipped = {(f"{document['kind'].lower()}s", document["metadata"]["name"]) for document in SHIPPED}
    assert shipped == {(resource.plural, name) for resource, ours in NAMES.items() for name in ours}
    roles = yaml.safe_load_all((FOLDER.parent / "rbac/webhooks.yaml").read_text())
    granted = {
        (resource, name)
        for role in roles
        for rule in role.get("rules", ())
        if "patch" in rule["verbs"]
        for resource in rule["resources"]
        for name in rule["resourceNames"]
    }
    assert granted == shipped


def test_the_command_refuses_what_no_api_server_takes(tmp_path: Path) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_bytes(b"PEM")
    plain = asked(str(FOLDER), "--ca-file", str(authority), "--url", "http://127.0.0.1:8443")
    assert plain.exit_code == 2 and "'http://127.0.0.1:8443' isn't https://HOST:PORT" in plain.output
    empty = asked(str(tmp_path), "--ca-file", str(authority))
    assert empty.exit_code == 2 and f"no configuration in {tmp_path}" in empty.output
