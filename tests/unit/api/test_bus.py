"""Commands as clients create them."""

from __future__ import annotations

from vcbatch.api.bus import command_manifest
from vcbatch.api.name_rules import dns_subdomain
from vcbatch.api.phases import Action
from vcbatch.api.resources import JOBS, QUEUES


def test_a_command_is_what_volcanos_clients_write() -> None:
    target = {
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": "u1",
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    assert command_manifest(JOBS, "train", "u1", Action.ABORT_JOB, namespace="team") == {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"generateName": "train-abortjob-", "namespace": "team", "ownerReferences": [target]},
        "action": "AbortJob",
        "target": target,
    }


def test_the_longest_name_leaves_a_valid_generate_name() -> None:
    command = command_manifest(QUEUES, "q" * 253, "u1", Action.CLOSE_QUEUE, namespace="default")
    assert not dns_subdomain(command["metadata"]["generateName"], prefix=True)
    assert command["target"]["name"] == "q" * 253
