"""What may be changed in a pod that exists."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.apiserver.core.servers import server, virtual
from tests.unit.apiserver.kinds.support import PODS, causes, container, make_pod, set_status
from vcbatch.local.apiserver.kinds.pods.specdiff import spec_diff, unified_diff

FORBIDDEN = "spec: Forbidden: pod updates may not change fields other than"


@pytest.mark.parametrize(
    ("made_with", "change", "error"),
    [
        ({}, {"hostname": "h"}, f"{FORBIDDEN} `spec.containers[*].image`"),
        ({}, {"nodeName": "n"}, f"{FORBIDDEN} `spec.containers[*].image`"),
        ({}, {"priority": 1}, f"{FORBIDDEN} `spec.containers[*].image`"),
        (
            {},
            {"containers": [container(), container(name="d")]},
            "spec.containers: Forbidden: pod updates may not add or remove containers",
        ),
        (
            {"activeDeadlineSeconds": 5},
            {"activeDeadlineSeconds": 6},
            "spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value",
        ),
        (
            {"activeDeadlineSeconds": 5},
            {"activeDeadlineSeconds": None},
            "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value",
        ),
        (
            {"tolerations": [{"key": "k", "operator": "Exists"}]},
            {"tolerations": []},
            "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
        ),
        (
            {"schedulingGates": [{"name": "a"}]},
            {"schedulingGates": [{"name": "a"}, {"name": "b"}]},
            "spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate 'b'",
        ),
    ],
)
@virtual
async def test_refused_changes(made_with: dict[str, Any], change: dict[str, Any], error: str) -> None:
    async with server() as client:
        await make_pod(client, **made_with)
        answer = await client.merge(f"{PODS}/p", {"spec": change})
        assert causes(answer)[0].startswith(error)


@virtual
async def test_allowed_changes_count_as_new_generations() -> None:
    async with server() as client:
        created = await make_pod(client, schedulingGates=[{"name": "a"}, {"name": "b"}])
        containers = created["spec"]["containers"]
        changes: list[dict[str, Any]] = [
            {"containers": [{**containers[0], "image": "other"}]},
            {"activeDeadlineSeconds": 9},
            {"tolerations": [*created["spec"]["tolerations"], {"key": "k", "operator": "Exists"}]},
            {"nodeSelector": {"disk": "ssd"}},
            {"schedulingGates": [{"name": "b"}]},
        ]
        for generation, change in enumerate(changes, start=2):
            answer = await client.merge(f"{PODS}/p", {"spec": change})
            assert (answer.code, answer.body["metadata"]["generation"]) == (200, generation), answer.body


def test_the_difference_names_the_internal_fields_with_their_neighbours() -> None:
    before = {"containers": [{"name": "c", "image": "x"}], "hostNetwork": True, "subdomain": "a"}
    head, *lines = spec_diff(before, {**before, "subdomain": "b"}).splitlines()
    assert head.startswith("@@ -")
    assert lines == [
        "  },",
        '  "ImagePullSecrets": null,',
        '  "Hostname": "",',
        '- "Subdomain": "a",',
        '+ "Subdomain": "b",',
        '  "SetHostnameAsFQDN": null,',
        '  "Affinity": null,',
        '  "SchedulerName": "",',
    ]
    assert spec_diff(before, before) == ""


@virtual
async def test_status_and_spec_are_written_apart() -> None:
    async with server() as client:
        await make_pod(client)
        through_status = await client.merge(
            f"{PODS}/p/status", {"spec": {"nodeName": "n"}, "status": {"phase": "Running"}}
        )
        assert through_status.body["status"]["phase"] == "Running"
        assert "nodeName" not in through_status.body["spec"]
        through_main = await client.merge(f"{PODS}/p", {"status": {"phase": "Failed"}})
        assert through_main.body["status"]["phase"] == "Running"


@virtual
async def test_the_service_class_stays() -> None:
    async with server() as client:
        await make_pod(client)
        answer = await client.merge(f"{PODS}/p/status", {"status": {"qosClass": "Guaranteed"}})
        assert causes(answer) == ['status.qosClass: Invalid value: "Guaranteed": field is immutable']


@pytest.mark.parametrize(("policy", "exit_code", "refused"), [("Never", 1, True), ("OnFailure", 1, False)])
@virtual
async def test_what_may_not_restart_stays_terminated(policy: str, exit_code: int, refused: bool) -> None:
    async with server() as client:
        await make_pod(client, restartPolicy=policy)
        status = {"name": "c", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
        ended = {**status, "state": {"terminated": {"exitCode": exit_code}}}
        await set_status(client, f"{PODS}/p", {"containerStatuses": [ended]})
        again = {**status, "state": {"running": {}}}
        answer = await client.merge(f"{PODS}/p/status", {"status": {"containerStatuses": [again]}})
        assert (answer.code == 422) is refused


def test_the_difference_escapes_as_go_does() -> None:
    before = {"containers": [{"name": "c", "image": "x", "command": ["a && b > c"]}]}
    after = {"containers": [{"name": "c", "image": "x", "command": ["a"]}]}
    assert '-    "a \\u0026\\u0026 b \\u003e c"' in spec_diff(before, after)


LINES = st.lists(st.sampled_from("abc"), max_size=12)


@given(before=LINES, after=LINES, around=st.sampled_from([0, 2, 5]))
def test_hunks_turn_the_old_lines_into_the_new_ones(before: list[str], after: list[str], around: int) -> None:
    same = [str(number) for number in range(around)]
    old, new = [*same, *before, *same], [*same, *after, *same]
    patched: list[str] = []
    at = 0
    for line in "".join(unified_diff(old, new)).splitlines():
        if line.startswith("@@"):
            start, _, count = line.split()[1].removeprefix("-").partition(",")
            first = int(start) - (count != "0")
            patched += old[at:first]
            at = first
        elif line[0] == "+":
            patched.append(line[1:])
        else:
            assert old[at] == line[1:]
            patched += [line[1:]] if line[0] == " " else []
            at += 1
    assert [*patched, *old[at:]] == new


def test_a_small_change_of_a_large_pod_is_shown() -> None:
    lines = ["same"] * 20_000
    assert list(unified_diff([*lines, "old", *lines], [*lines, "new", *lines])) == [
        "@@ -19998,7 +19998,7 @@\n",
        *[" same\n"] * 3,
        "-old\n",
        "+new\n",
        *[" same\n"] * 3,
    ]
