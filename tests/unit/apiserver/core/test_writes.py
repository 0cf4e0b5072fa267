from __future__ import annotations

from typing import Any

import pytest

from tests.unit.apiserver.core.servers import CONFIGMAPS, SERVICE, configmap, configure, server, virtual, webhook
from vcbatch.api import resources
from vcbatch.interfaces.api import ApiError, PatchKind
from vcbatch.local.apiserver.access import User
from vcbatch.local.apiserver.admission import Answer, Asked
from vcbatch.local.apiserver.request import BODY_LIMIT


@virtual
async def test_a_write_that_changes_nothing_is_no_write() -> None:
    async with server() as client:
        made = await client.make("a")
        version = client.kernel.store.version

        same = await client.put(f"{CONFIGMAPS}/a", configmap("a"))
        patched = await client.merge(f"{CONFIGMAPS}/a", {"data": {"k": "v"}})

        assert same.body == patched.body == made
        assert client.kernel.store.version == version


@virtual
async def test_true_is_not_one() -> None:
    async with server() as client:
        await client.make("a")
        await client.merge(f"{CONFIGMAPS}/a", {"immutable": False})

        assert (await client.get(f"{CONFIGMAPS}/a")).body["immutable"] is False


@virtual
async def test_a_dry_run_answers_and_keeps_nothing() -> None:
    async with server() as client:
        version = client.kernel.store.version
        made = await client.post(f"{CONFIGMAPS}?dryRun=All", configmap("a"))

        assert made.code == 201 and made.body["metadata"]["uid"]
        assert (await client.get(f"{CONFIGMAPS}/a")).code == 404
        await client.make("a")
        assert (await client.merge(f"{CONFIGMAPS}/a?dryRun=All", {"data": {"k": "w"}})).body["data"] == {"k": "w"}
        assert (await client.delete(f"{CONFIGMAPS}/a?dryRun=All")).code == 200
        assert (await client.get(f"{CONFIGMAPS}/a")).body["data"] == {"k": "v"}
        assert client.kernel.store.version == version + 1


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("dryRun=Some", 'dryRun: Unsupported value: ["Some"]: supported values: "All"'),
        (
            "fieldValidation=Maybe",
            'fieldValidation: Unsupported value: "Maybe": supported values: "", "Ignore", "Strict", "Warn"',
        ),
    ],
)
def test_unknown_options_are_refused(query: str, message: str) -> None:
    @virtual
    async def check() -> None:
        async with server() as client:
            answer = await client.post(f"{CONFIGMAPS}?{query}", configmap("a"))
            assert (answer.code, answer.message) == (422, f'CreateOptions.meta.k8s.io "" is invalid: {message}')

    check()


@virtual
async def test_unknown_and_doubled_fields_warn_or_refuse() -> None:
    async with server() as client:
        body = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"1","k":"2"},"bogus":1}'

        strict = await client.post(f"{CONFIGMAPS}?fieldValidation=Strict", body)
        assert strict.code == 400
        assert 'strict decoding error: duplicate field "data.k", unknown field "bogus"' in strict.message

        silent = await client.post(f"{CONFIGMAPS}?fieldValidation=Ignore&dryRun=All", body)
        assert silent.code == 201 and not silent.headers

        warned = await client.post(CONFIGMAPS, body)
        assert [value for name, value in warned.headers if name == "Warning"] == [
            r'299 - "duplicate field \"data.k\""',
            r'299 - "unknown field \"bogus\""',
        ]
        assert warned.body["data"] == {"k": "2"} and "bogus" not in warned.body


@virtual
async def test_yaml_bodies_are_read_and_their_traps_refused() -> None:
    async with server() as client:
        yaml = {"content-type": "application/yaml"}
        body = b"metadata: {name: a}\ndata:\n  word: 'yes'\n  day: '2026-01-01'\n  again: &x z\n  and: *x\n"
        made = await client.post(CONFIGMAPS, body, headers=yaml)
        assert made.body["data"] == {"word": "yes", "day": "2026-01-01", "again": "z", "and": "z"}

        levels = [b"a0: &a0 [1, 1]"] + [
            b"a%d: &a%d [%b]" % (n, n, b",".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 9)
        ]
        bomb = await client.post(CONFIGMAPS, b"\n".join(levels), headers=yaml)
        assert bomb.code == 400 and "excessive aliasing" in bomb.message
        assert (await client.post(CONFIGMAPS, b"a: [", headers=yaml)).code == 400


@pytest.mark.parametrize("depth", [250, 3000, 200_000])
@pytest.mark.parametrize("kind", ["application/json", "application/merge-patch+json", "application/yaml"])
def test_bodies_that_nest_without_end_are_refused(depth: int, kind: str) -> None:
    @virtual
    async def check() -> None:
        async with server() as client:
            await client.make("a")
            body = b'{"metadata":{"name":"a"},"x":' + b'{"x":' * depth + b"1" + b"}" * depth + b"}"
            method = "PATCH" if "patch" in kind else "PUT"
            answer = await client.send(method, f"{CONFIGMAPS}/a", body, headers={"content-type": kind})
            assert answer.code == 400, answer.body

    check()


@virtual
async def test_generated_names_differ_and_keep_their_prefix() -> None:
    async with server() as client:
        body = {"metadata": {"generateName": "x-"}}
        made = {(await client.post(CONFIGMAPS, body)).body["metadata"]["name"] for _ in range(5)}

        assert len(made) == 5 and all(name.startswith("x-") and len(name) == 7 for name in made)


@virtual
async def test_what_the_server_sets_cannot_be_set() -> None:
    async with server() as client:
        made = await client.make("a", uid="mine", creationTimestamp="2000-01-01T00:00:00Z", generation=7)
        metadata = made["metadata"]

        assert metadata["uid"] != "mine" and metadata["creationTimestamp"] > "2026" and "generation" not in metadata
        refused = await client.merge(f"{CONFIGMAPS}/a", {"metadata": {"uid": "other"}})
        assert refused.code == 422 and "metadata.uid: Invalid value" in refused.message
        changed = await client.merge(f"{CONFIGMAPS}/a", {"metadata": {"creationTimestamp": None, "labels": {"a": "b"}}})
        assert changed.body["metadata"]["creationTimestamp"] == metadata["creationTimestamp"]


@virtual
async def test_a_namespace_of_what_is_in_none_is_dropped() -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    body = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high", "namespace": "default"},
        "value": 1,
    }
    async with server() as client:
        made = await client.post(path, body)
        replaced = await client.put(f"{path}/high", {**body, "description": "a"})
        patched = await client.merge(f"{path}/high", {"metadata": {"namespace": "other"}, "description": "b"})
        headers = {"content-type": "application/apply-patch+yaml"}
        applied = await client.send("PATCH", f"{path}/high?fieldManager=m&force=true", body, headers=headers)
        new = {**body, "metadata": {"name": "new", "namespace": "default"}}
        first = await client.send("PATCH", f"{path}/new?fieldManager=m", new, headers=headers)

    assert [one.code for one in (made, replaced, patched, applied, first)] == [201, 200, 200, 200, 201]
    for answer in (made, replaced, patched, applied, first):
        assert "namespace" not in answer.body["metadata"]


@virtual
async def test_a_replace_for_another_uid_is_a_conflict() -> None:
    async with server() as client:
        await client.make("a")
        answer = await client.put(f"{CONFIGMAPS}/a", configmap("a", uid="other", data={"k": "w"}))

        assert (answer.code, answer.body["reason"]) == (409, "Conflict")
        assert "UID in precondition: other" in answer.message


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"metadata": []}, 400),
        ({"metadata": {"name": "a", "labels": {"x": 1}}}, 400),
        ({"metadata": {"name": 7}}, 400),
        ({"metadata": {"name": "a", "finalizers": [1]}}, 400),
        ({"metadata": {"name": "a", "ownerReferences": ["x"]}}, 400),
        ({"metadata": {"name": "a" * 254}}, 422),
        ({"metadata": {"name": "a", "annotations": {"b c": "x"}}}, 422),
        ({"metadata": {"name": "a/b"}}, 422),
        ({}, 422),
    ],
)
def test_odd_metadata_is_refused_and_harms_nobody(body: Any, code: int) -> None:
    @virtual
    async def check() -> None:
        async with server() as client:
            answer = await client.post(CONFIGMAPS, body)
            assert (answer.code, answer.body["kind"]) == (code, "Status")
            assert (await client.get(CONFIGMAPS)).code == 200

    check()


@virtual
async def test_admission_changes_and_denies() -> None:
    async def judge(asked: Asked) -> Answer:
        if asked.path == "/set.example.com":
            user = asked.request["userInfo"]["username"]
            return Answer(allowed=True, patch=[{"op": "add", "path": "/data/by", "value": user}])
        bad = asked.request["object"]["data"].get("k") == "bad"
        return Answer(allowed=not bad, status={"message": "no such data", "code": 403, "reason": "Forbidden"})

    async with server(services={SERVICE: judge}) as client:
        await configure(client, "mutating", webhook("set.example.com"))
        await configure(client, "validating", webhook())
        assert (await client.make("a", namespace="default"))["data"]["by"] == "admin"
        denied = await client.post(CONFIGMAPS, configmap("b", data={"k": "bad"}))
        assert denied.code == 403
        assert denied.message == 'admission webhook "check.example.com" denied the request: no such data'


@virtual
async def test_only_administrators_may_do_anything() -> None:
    async with server() as client:
        nobody = User(name="nobody", groups=("system:authenticated",))
        listed = await client.get(CONFIGMAPS, user=nobody)

        assert listed.code == 403
        assert 'User "nobody" cannot list resource "configmaps"' in listed.message
        assert (await client.post("/nonsense", {}, user=nobody)).code == 403


@virtual
async def test_a_body_at_the_limit_is_taken() -> None:
    async with server() as client:
        size = BODY_LIMIT - 1000
        answer = await client.post(CONFIGMAPS, configmap("a", data={"k": "v" * size}))

        assert answer.code in (201, 422)


@virtual
async def test_the_seam_reads_and_writes_as_any_client() -> None:
    async with server() as client:
        api = client.kernel.api
        body = configmap("a")
        made = await api.create(resources.CONFIGMAPS, body, namespace="default")
        assert "uid" not in body["metadata"] and made["metadata"]["uid"]
        made["data"]["k"] = "mine"
        assert (await api.get(resources.CONFIGMAPS, "a", namespace="default"))["data"] == {"k": "v"}

        with pytest.raises(ApiError) as conflict:
            await api.delete(resources.CONFIGMAPS, "a", namespace="default", uid="other")
        assert conflict.value.conflict
        with pytest.raises(ApiError) as exists:
            await api.create(resources.CONFIGMAPS, body, namespace="default")
        assert exists.value.already_exists
        with pytest.raises(ApiError) as missing:
            await api.get(resources.CONFIGMAPS, "z", namespace="default")
        assert missing.value.not_found
        listing = await api.list(resources.CONFIGMAPS, namespace="default", field_selector="metadata.name=a")
        assert [one["metadata"]["name"] for one in listing.items] == ["a"]


@virtual
async def test_a_watch_through_the_seam_goes_on_from_a_list() -> None:
    async with server() as client:
        api = client.kernel.api
        listing = await api.list(resources.CONFIGMAPS, namespace="default")
        await client.make("a")
        await client.delete(f"{CONFIGMAPS}/a")
        events = []
        async for event in api.watch(
            resources.CONFIGMAPS, resource_version=listing.resource_version, namespace="default"
        ):
            events.append((event.type, event.object["metadata"].get("name")))
            if len(events) == 3:
                break

        assert events == [("ADDED", "a"), ("DELETED", "a"), ("BOOKMARK", None)]
        with pytest.raises(ApiError) as expired:
            client.kernel.store.collection(resources.CONFIGMAPS).history.floor = 10**6
            async for _ in api.watch(resources.CONFIGMAPS, resource_version="5"):
                pass
        assert expired.value.expired


@virtual
async def test_the_seam_patches_in_every_way() -> None:
    async with server() as client:
        api, maps = client.kernel.api, resources.CONFIGMAPS
        await api.create(maps, configmap("a", data={"k": "1"}), namespace="default")
        operations = [{"op": "replace", "path": "/data/k", "value": "2"}]
        await api.patch(maps, "a", operations, namespace="default", kind=PatchKind.JSON)
        await api.patch(maps, "a", {"data": {"m": "3"}}, namespace="default", kind=PatchKind.MERGE)
        await api.patch(maps, "a", {"data": {"s": "4"}}, namespace="default", kind=PatchKind.STRATEGIC)
        last = await api.patch(maps, "a", configmap("a", data={"y": "5"}), namespace="default", kind=PatchKind.APPLY)

        assert last["data"] == {"k": "2", "m": "3", "s": "4", "y": "5"}
        with pytest.raises(ApiError) as refused:
            await api.patch(maps, "a", [{"op": "remove", "path": "/none"}], namespace="default", kind=PatchKind.JSON)
        assert refused.value.code == 422


@virtual
async def test_a_bind_through_the_seam_is_for_one_uid() -> None:
    async with server() as client:
        api = client.kernel.api
        pod = await api.create(
            resources.PODS,
            {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
            namespace="default",
        )
        with pytest.raises(ApiError) as other:
            await api.bind(namespace="default", name="p", uid="other", node="n")
        assert other.value.code == 409
        await api.bind(namespace="default", name="p", uid=pod["metadata"]["uid"], node="n", annotations={"x": "y"})
        bound = await api.get(resources.PODS, "p", namespace="default")

        assert (bound["spec"]["nodeName"], bound["metadata"]["annotations"]) == ("n", {"x": "y"})
        with pytest.raises(ApiError) as again:
            await api.bind(namespace="default", name="p", uid=pod["metadata"]["uid"], node="m")
        assert again.value.code == 409
