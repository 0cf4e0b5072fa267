"""The policies that are shipped."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.corpus.corpus import rules
from vcbatch.api.model import Json
from webhooks.policies import MUTATING_VERSIONS, documents

SHIPPED = Path(__file__).parents[3] / "helm/vcbatch/files/policies"


def parsed(**choices: str) -> list[Json]:
    return [item for text in documents(**choices).values() for item in yaml.safe_load_all(text) if item]


def test_the_shipped_files_are_current() -> None:
    """`vcbatch policies --output helm/vcbatch/files/policies` writes them."""
    assert {file.name: file.read_text() for file in SHIPPED.iterdir()} == documents()


def test_every_policy_is_bound() -> None:
    items = parsed()
    bound = {(item["kind"], item["spec"]["policyName"]) for item in items if item["kind"].endswith("Binding")}
    assert bound == {
        (f"{item['kind']}Binding", item["metadata"]["name"]) for item in items if "Binding" not in item["kind"]
    }


def test_pods_go_on_where_a_policy_fails() -> None:
    for item in parsed():
        if "failurePolicy" in item["spec"]:
            (rule,) = item["spec"]["matchConstraints"]["resourceRules"]
            assert item["spec"]["failurePolicy"] == ("Ignore" if rule["resources"] == ["pods"] else "Fail")


def test_nothing_reads_an_object_that_is_gone() -> None:
    """Of a deletion there is only the old one."""
    for item in parsed():
        constraints = item["spec"].get("matchConstraints")
        if constraints and "DELETE" in constraints["resourceRules"][0]["operations"]:
            expressions = [each["expression"] for each in item["spec"]["validations"]]
            assert not any("object" in text.replace("oldObject", "") for text in expressions)


@pytest.mark.parametrize("version", MUTATING_VERSIONS)
def test_the_version_of_mutating_policies_can_be_chosen(version: str) -> None:
    made = {item["apiVersion"] for item in parsed(mutating_version=version) if item["kind"].startswith("Mutating")}
    assert made == {f"admissionregistration.k8s.io/{version}"}


def test_other_schedulers_of_ours() -> None:
    text = "".join(documents(("gpu", "cpu")).values())
    assert "['gpu', 'cpu']" in text
    assert "value: 'gpu'" in text
    assert "'volcano'" not in text


def test_what_no_policy_says_is_listed() -> None:
    document = (SHIPPED.parents[3] / "docs/admission.md").read_text()
    for rule in rules().values():
        assert not rule.policy or f"`{rule.name}`" in document, rule.name
