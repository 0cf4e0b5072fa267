"""Whatever a client sends, the answer is a Status of its own error, and the server goes on."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.virtual_time import run
from tests.unit.apiserver.core.servers import CONFIGMAPS, configmap, server

# fmt: off
KEYS = st.sampled_from([
    "apiVersion", "kind", "metadata", "name", "namespace", "labels", "annotations", "finalizers",
    "ownerReferences", "uid", "resourceVersion", "generateName", "deletionTimestamp", "spec", "status",
    "data", "containers", "template", "tasks", "replicas", "op", "path", "value", "from",
    "propagationPolicy", "gracePeriodSeconds", "preconditions", "dryRun", "$patch", "$retainKeys",
    "$setElementOrder/containers", "conditions", "type", "ports", "selector", "rules", "names", "versions",
    "schema", "group", "scope",
])
# fmt: on
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        ["", "a", "A b", "v1", "Pod", "ConfigMap", "/data", "replace", "2026-01-01T00:00:00Z", "0", "\x00"]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)
RESOURCES = (
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/services",
    "/api/v1/namespaces/default/secrets",
    "/api/v1/namespaces/default/events",
    "/api/v1/nodes",
    "/api/v1/namespaces",
    "/apis/coordination.k8s.io/v1/namespaces/default/leases",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
)
TYPES = st.sampled_from(
    [
        "application/json",
        "application/yaml",
        "application/merge-patch+json",
        "application/json-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
        "application/vnd.kubernetes.protobuf",
        "",
    ]
)


@st.composite
def objects(draw: st.DrawFn) -> Any:
    """Often something that looks like an object, so that the code behind decoding is reached."""
    body = draw(VALUES)
    if isinstance(body, dict) and draw(st.booleans()):
        metadata = body.get("metadata")
        body["metadata"] = {**(metadata if isinstance(metadata, dict) else {}), "name": "a"}
    return body


@given(
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]),
    resource=st.sampled_from(RESOURCES),
    rest=st.sampled_from(["", "/a", "/a/status", "/a/scale", "/a/nonsense", "/a/binding", "/a/log"]),
    query=st.sampled_from(
        ["", "?dryRun=All", "?limit=1", "?fieldSelector=a%3Db", "?labelSelector=a,,b", "?resourceVersion=x", "?limit=x"]
    ),
    content_type=TYPES,
    accept=st.sampled_from(
        ["", "application/json;as=Table;v=v1;g=meta.k8s.io", "application/yaml", "application/vnd.kubernetes.protobuf"]
    ),
    body=st.one_of(objects().map(lambda value: json.dumps(value).encode()), st.binary(max_size=20)),
)
@settings(max_examples=250)
def test_no_request_makes_the_server_fail(
    method: str, resource: str, rest: str, query: str, content_type: str, accept: str, body: bytes
) -> None:
    async def play() -> None:
        async with server() as client:
            await client.post(CONFIGMAPS, configmap("a"))
            headers = {"content-type": content_type, "accept": accept}
            answer = await client.send(method, resource + rest + query, body, headers=headers)
            if isinstance(answer.body, dict):
                assert answer.body.get("reason") != "InternalError", answer.body
            assert (await client.get(CONFIGMAPS)).code == 200

    run(play())
