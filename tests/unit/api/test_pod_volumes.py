"""Of a pod's volumes only those are told apart that decide where it may run."""

from __future__ import annotations

import msgspec
import pytest

from vcbatch.api.pod import Pod

_TOKEN = {"name": "kube-api-access", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}


@pytest.mark.parametrize(
    ("volume", "claims"),
    [
        (_TOKEN, False),
        ({"name": "scratch", "emptyDir": {}}, False),
        ({"name": "data", "persistentVolumeClaim": {"claimName": "data"}}, True),
        ({"name": "temporary", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}, True),
    ],
)
def test_volumes_that_claim_storage(volume: dict[str, object], claims: bool) -> None:
    pod = msgspec.convert({"spec": {"volumes": [_TOKEN, volume]}}, Pod)
    assert [held.claims for held in pod.spec.volumes or ()] == [False, claims]
