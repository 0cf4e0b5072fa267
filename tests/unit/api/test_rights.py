"""What somebody may not do, read from the words of an API server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcbatch.api.rights import missing_right


@pytest.mark.parametrize(
    ("refusal", "sentence", "rule"),
    [
        (
            (
                'jobs.batch.volcano.sh "train" is forbidden: User "jane" cannot delete resource "jobs" in API group '
                '"batch.volcano.sh" in the namespace "research"'
            ),
            "jane cannot delete jobs.batch.volcano.sh in namespace research",
            "{apiGroups: [batch.volcano.sh], resources: [jobs], verbs: [delete]}",
        ),
        (
            (
                'pods "a-0" is forbidden: User "system:serviceaccount:ci:me" cannot get resource "pods/log" in API '
                'group "" in the namespace "ci": RBAC: role.rbac.authorization.k8s.io "reader" not found'
            ),
            "system:serviceaccount:ci:me cannot get pods/log in namespace ci",
            '{apiGroups: [""], resources: [pods/log], verbs: [get]}',
        ),
        (
            (
                'queues.scheduling.volcano.sh is forbidden: User "jane" cannot list resource "queues" in API group '
                '"scheduling.volcano.sh" at the cluster scope'
            ),
            "jane cannot list queues.scheduling.volcano.sh at the cluster scope",
            "{apiGroups: [scheduling.volcano.sh], resources: [queues], verbs: [list]}",
        ),
    ],
)
def test_a_refusal_names_the_right_and_the_rule_that_gives_it(refusal: str, sentence: str, rule: str) -> None:
    missing = missing_right(refusal)
    assert missing is not None
    assert (str(missing), missing.rule) == (sentence, rule)
    assert (f"a Role in namespace {missing.namespace}" if missing.namespace else "a ClusterRole") in missing.remedy
    assert missing.rule in missing.remedy


@pytest.mark.parametrize(
    "refusal",
    [
        "",
        'pods "x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2',
        'admission webhook "validatejob.volcano.sh" denied the request: no',
        'forbidden: User "jane" cannot get path "/metrics"',
    ],
)
def test_what_is_refused_for_another_reason_names_no_right(refusal: str) -> None:
    assert missing_right(refusal) is None


_WORD = st.text("abcdefghijklmnopqrstuvwxyz.-:", min_size=1, max_size=12)


@given(_WORD, _WORD, _WORD, st.sampled_from(["", "log", "exec"]), st.sampled_from(["", "batch.volcano.sh"]), _WORD)
def test_every_right_is_read_as_it_is_written(
    user: str, verb: str, plural: str, subresource: str, group: str, namespace: str
) -> None:
    resource = f"{plural}/{subresource}" if subresource else plural
    missing = missing_right(
        f'{plural} is forbidden: User "{user}" cannot {verb} resource "{resource}" in API group "{group}" '
        f'in the namespace "{namespace}"'
    )
    assert missing is not None
    assert (missing.user, missing.verb, missing.plural) == (user, verb, plural)
    assert (missing.subresource, missing.group, missing.namespace) == (subresource, group, namespace)
