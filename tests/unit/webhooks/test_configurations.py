"""The webhook configurations as shipped: what is asked, how, and what happens when nobody answers."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from vcbatch.api.admission import Operation
from vcbatch.api.model import Json
from vcbatch.api.resource_groups import parse_resource_groups
from vcbatch.api.resources import PODGROUPS, PODS, Resource
from vcbatch.local.apiserver import expressions
from vcbatch.local.apiserver.admission.hooks import conditions_of
from vcbatch.local.apiserver.admission.matching import variables_of
from webhooks.configurations import NAMES, Target, pointed, read
from webhooks.paths import PATHS
from webhooks.policies.expressions import OF_A_JOB
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
        subresources = sorted(name and f"/{name}" for name in path.subresources)
        assert rule["resources"] == [resource.plural + name for name in subresources], "status is nobody's to judge"
        assert rule["scope"] == ("Namespaced" if resource.namespaced else "Cluster")


def test_admission_never_takes_a_cluster_down() -> None:
    for document in SHIPPED:
        (webhook,) = document["webhooks"]
        pods = webhook["rules"][0]["resources"][0] == PODS.plural
        assert webhook["failurePolicy"] == ("Ignore" if pods else "Fail")
        conditions = [condition["name"] for condition in webhook.get("matchConditions", ())]
        others = [name for name in conditions if name != OF_A_JOB]
        few = others in (["new-or-moved"], ["to-a-queue"])
        assert bool(others) is (pods or few), "other schedulers' pods aren't asked about"
        assert (webhook["timeoutSeconds"], webhook["sideEffects"]) == (5, "None")
        assert webhook["matchPolicy"] == "Equivalent"
        if others == ["to-a-queue"]:
            assert "namespaceSelector" not in webhook, "one from any namespace closes any queue"
            continue
        (expression,) = webhook["namespaceSelector"]["matchExpressions"]
        assert (expression["operator"], set(expression["values"])) == ("NotIn", {"volcano-system", "kube-system"})


ACCOUNT = "system:serviceaccount:volcano-system:vcbatch-controllers"
OF_JOB: Json = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u", "controller": True}


def asked_about(webhook: Json, obj: Json, *, user: str, old: Json | None = None, subresource: str = "") -> bool:
    """Whether the conditions of a webhook hold, as the embedded API server evaluates them."""
    conditions = conditions_of(webhook)
    namespace = obj["metadata"].get("namespace", "")
    review = {"object": obj, "oldObject": old, "userInfo": {"username": user, "groups": []}, "namespace": namespace}
    if subresource:
        review["subResource"] = subresource
    costs = expressions.Costs(patient=True, limit=2_500_000)
    outcomes = [costs.run(condition.expression, variables_of(review)) for condition in conditions]
    assert all(isinstance(outcome, bool) for outcome in outcomes), outcomes
    return all(outcome is True for outcome in outcomes)


def child(*, owner: Json | None = OF_JOB, scheduler: str = "volcano", **metadata: Any) -> Json:
    owners = {"ownerReferences": [owner]} if owner is not None else {}
    return {
        "metadata": {"name": "c", "namespace": "default", **owners, **metadata},
        "spec": {"queue": "default", "schedulerName": scheduler},
    }


def webhooks_of(resource: Resource, configurations: Sequence[Json] = SHIPPED) -> list[Json]:
    found = [webhook for made in configurations for webhook in made["webhooks"]]
    return [webhook for webhook in found if webhook["rules"][0]["resources"][0] == resource.plural]


@pytest.mark.parametrize("resource", [PODS, PODGROUPS], ids=lambda resource: resource.plural)
@pytest.mark.parametrize(
    ("obj", "user", "asked"),
    [
        (child(), ACCOUNT, False),
        (child(), "system:serviceaccount:default:vcbatch-controllers", True),
        (child(), "system:serviceaccount:volcano-system:vcbatch-controllers-2", True),
        (child(), "system:serviceaccount:volcano-system:vcbatch-scheduler", True),
        (child(), "admin", True),
        (child(owner=None), ACCOUNT, True),
        (child(owner={**OF_JOB, "apiVersion": "batch/v1"}), ACCOUNT, True),
        (child(owner={**OF_JOB, "apiVersion": "batch.volcano.sh.example.com/v1"}), ACCOUNT, True),
        (child(owner={**OF_JOB, "kind": "CronJob"}), ACCOUNT, True),
        (child(owner={**OF_JOB, "controller": False}), ACCOUNT, True),
        (child(owner={key: value for key, value in OF_JOB.items() if key != "controller"}), ACCOUNT, True),
    ],
)
def test_what_the_controllers_create_for_a_job_isnt_asked_about(
    resource: Resource, obj: Json, user: str, asked: bool
) -> None:
    found = webhooks_of(resource)
    assert len(found) == 2
    for webhook in found:
        assert asked_about(webhook, obj, user=user) is asked
    for webhook in webhooks_of(resource, pointed(SHIPPED, target=Target(job_pods=True))):
        assert asked_about(webhook, obj, user=user)


def test_a_pod_of_a_job_that_gets_another_queue_is_asked_about() -> None:
    """By whoever it is."""
    old, new = child(), child(annotations={"scheduling.volcano.sh/queue-name": "other"})
    (judging,) = (each for each in webhooks_of(PODS) if each["name"] == "pods.validate.volcano.sh")
    assert asked_about(judging, new, old=old, user=ACCOUNT)
    moved = {**old, "spec": {**old["spec"], "queue": "other"}}
    (judging,) = (each for each in webhooks_of(PODGROUPS) if each["name"] == "podgroups.validate.volcano.sh")
    assert asked_about(judging, moved, old=old, user=ACCOUNT)


@pytest.mark.parametrize(("subresource", "scheduler", "asked"), [
    ("resize", "volcano", True), ("resize", "default-scheduler", False), ("", "volcano", False),
])  # fmt: skip
def test_a_pod_that_is_resized_is_asked_about(subresource: str, scheduler: str, asked: bool) -> None:
    (judging,) = (each for each in webhooks_of(PODS) if each["name"] == "pods.validate.volcano.sh")
    pod = child(scheduler=scheduler)
    assert asked_about(judging, pod, old=pod, user=ACCOUNT, subresource=subresource) is asked


def test_the_shipped_condition_is_the_one_that_others_are_made_of() -> None:
    assert pointed(SHIPPED) == SHIPPED
    elsewhere = Target(service="s", namespace="batch", controllers="batch/c")
    for resource in (PODS, PODGROUPS):
        for webhook in webhooks_of(resource, pointed(SHIPPED, target=elsewhere)):
            assert not asked_about(webhook, child(), user="system:serviceaccount:batch:c")
            assert asked_about(webhook, child(), user=ACCOUNT)
    for made in pointed(SHIPPED, target=elsewhere):
        (webhook,) = made["webhooks"]
        where = webhook["clientConfig"]["service"]
        assert (where["name"], where["namespace"]) == ("s", "batch")
        for expression in webhook.get("namespaceSelector", {}).get("matchExpressions", ()):
            assert set(expression["values"]) == {"batch", "kube-system"}


def test_whose_pods_are_asked_about_follows_the_schedulers_and_the_groups() -> None:
    document = {
        "resourceGroups": [
            {"resourceGroup": "a", "object": {"key": "namespace", "value": ["ops", "it's"]}, "labels": {}},
            {"resourceGroup": "b", "object": {"key": "annotation", "value": ["pool: cpu"]}, "labels": {}},
        ]
    }
    target = Target(schedulers=("gpu", "cpu"), groups=parse_resource_groups(document))
    mutating, judging = webhooks_of(PODS, pointed(SHIPPED, target=target))
    for scheduler, ours in (("gpu", True), ("cpu", True), ("volcano", False)):
        for webhook in (mutating, judging):
            assert asked_about(webhook, child(owner=None, scheduler=scheduler), user="u") is ours
    for more in ({"namespace": "ops"}, {"namespace": "it's"}, {"annotations": {"pool": "cpu"}}):
        pod = child(owner=None, scheduler="other", **more)
        assert asked_about(mutating, pod, user="u")
        assert not asked_about(judging, pod, user="u")
    assert not asked_about(mutating, child(owner=None, scheduler="other", annotations={"pool": "gpu"}), user="u")


def test_the_command_takes_the_account_and_the_pods_of_jobs() -> None:
    done = asked(str(FOLDER), "--controllers-account", "batch/c", "--include-job-pods")
    assert done.exit_code == 0
    expected = pointed(SHIPPED, target=Target(controllers="batch/c", job_pods=True))
    assert list(yaml.safe_load_all(done.output)) == expected
    assert OF_A_JOB not in done.output
    wrong = asked(str(FOLDER), "--controllers-account", "x' || 'a/b")
    assert wrong.exit_code == 2 and "must be NAMESPACE/NAME" in wrong.output


def test_pointing_leaves_the_originals_alone() -> None:
    by_url = pointed(SHIPPED, ca_bundle=b"PEM", target=Target(url="https://127.0.0.1:1/"))
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
    expected = pointed(SHIPPED, ca_bundle=b"PEM", target=Target(url="https://127.0.0.1:8443"))
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
    assert done.exit_code == 2 and "must be NAMESPACE/NAME" in done.output


def test_two_who_would_write_the_authority_are_one_too_many(tmp_path: Path) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_bytes(b"PEM")
    done = asked(str(FOLDER), "--cert-manager", "a/b", "--ca-file", str(authority))
    assert done.exit_code == 2 and "mutually exclusive" in done.output


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
    assert plain.exit_code == 2 and "must be https://HOST:PORT, got 'http://127.0.0.1:8443'" in plain.output
    empty = asked(str(tmp_path), "--ca-file", str(authority))
    assert empty.exit_code == 2 and f"no webhook configurations in {tmp_path}" in empty.output
