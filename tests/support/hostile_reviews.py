"""Objects that are expensive to validate: as large as the size limits allow, or small and expensive for one rule.

Each is the body of an AdmissionReview for one path; all are within the limits of size, depth and number of values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from vcbatch.api.model import Json
from webhooks.app import LARGEST_BODY
from webhooks.paths import PATHS
from webhooks.review import MOST_VALUES

_ROOM = LARGEST_BODY - 4096
"""Bytes available for the object itself."""
_VALUES = MOST_VALUES - 1000


def body_of(path: str, obj: Any, *, operation: str = "CREATE", old: Any = None) -> bytes:
    """The body of a review of that object for that path."""
    resource = PATHS[path].resource
    request = {
        "uid": "u", "operation": operation, "name": "n", "namespace": "ns", "object": obj, "oldObject": old,
        "resource": {"group": resource.group, "version": resource.version, "resource": resource.plural},
    }  # fmt: skip
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(review, separators=(",", ":"), ensure_ascii=False).encode(errors="surrogatepass")


def named(spec: Json, **metadata: Any) -> Json:
    return {"metadata": {"name": "n", "namespace": "ns", **metadata}, "spec": spec}


def _container(**more: Any) -> Json:
    return {"name": "c", "image": "i", **more}


def _task(name: str = "t", *, containers: Any = None, **more: Any) -> Json:
    return {"name": name, "replicas": 1, "template": {"spec": {"containers": containers or [_container()]}}, **more}


def _job(tasks: Any, **more: Any) -> Json:
    return named({"queue": "default", "tasks": tasks, **more})


def _many(make: Callable[[int], Any], *, bytes_each: int, values_each: int, most: int = 10**9) -> list[Any]:
    """As many elements as the limits allow."""
    return [make(number) for number in range(min(_ROOM // bytes_each, _VALUES // values_each, most))]


def _entries(key: Callable[[int], str], value: Callable[[int], Any], *, bytes_each: int) -> Json:
    return {key(number): value(number) for number in range(min(_ROOM // bytes_each, _VALUES))}


def _jobs() -> Iterator[tuple[str, Json]]:
    yield "many tasks", _job(_many(lambda n: _task(f"t{n}"), bytes_each=95, values_each=10))
    yield "tasks of one name", _job(_many(lambda n: _task("t"), bytes_each=95, values_each=10))
    yield "no names", _job(_many(lambda n: {"replicas": 1}, bytes_each=16, values_each=2))
    yield (
        "a chain of tasks",
        _job(_many(lambda n: _task(f"t{n}", dependsOn={"name": [f"t{n - 1}"]}), bytes_each=130, values_each=13)),
    )
    ring = _many(lambda n: _task(f"t{n}", dependsOn={"name": [f"t{n + 1}"]}), bytes_each=130, values_each=13)
    ring[-1]["dependsOn"]["name"] = ["t0"]
    yield "a ring of tasks", _job(ring)
    yield (
        "all depend on all",
        _job([_task(f"t{n}", dependsOn={"name": [f"t{m}" for m in range(n)]}) for n in range(290)]),
    )
    yield (
        "one depends on many",
        _job([_task(dependsOn={"name": _many(lambda n: f"x{n}", bytes_each=10, values_each=1)}), _task("x1")]),
    )
    yield (
        "many containers",
        _job([_task(containers=_many(lambda n: _container(name=f"c{n}"), bytes_each=30, values_each=3))]),
    )
    yield (
        "containers of one name",
        _job([_task(containers=_many(lambda n: _container(), bytes_each=30, values_each=3))]),
    )
    yield (
        "many variables",
        _job(
            [
                _task(
                    containers=[
                        _container(env=_many(lambda n: {"name": f"E{n}", "value": "v"}, bytes_each=32, values_each=3))
                    ]
                )
            ]
        ),
    )
    yield (
        "bad variables",
        _job(
            [
                _task(
                    containers=[
                        _container(env=_many(lambda n: {"name": f"{n}=", "value": 1}, bytes_each=32, values_each=3))
                    ]
                )
            ]
        ),
    )
    yield "many ports", _job(
        [_task(containers=[_container(ports=_many(
            lambda n: {"containerPort": n % 65535 + 1, "hostPort": n % 65535 + 1, "name": f"p{n % 99}"},
            bytes_each=60, values_each=4))])]
    )  # fmt: skip
    yield "many mounts", _job(
        [_task(containers=[_container(volumeMounts=_many(
            lambda n: {"name": f"v{n}", "mountPath": f"/m{n}"}, bytes_each=50, values_each=3))])]
    )  # fmt: skip
    volumes = _many(lambda n: {"name": f"v{n}", "emptyDir": {}}, bytes_each=45, values_each=3, most=7_000)
    mounts = [{"name": f"v{n}", "mountPath": f"/m{n}"} for n in range(len(volumes))]
    both = {"containers": [_container(volumeMounts=mounts)], "volumes": volumes}
    yield "many volumes and mounts", _job([{"name": "t", "replicas": 1, "template": {"spec": both}}])
    yield (
        "many resources",
        _job(
            [
                _task(
                    containers=[
                        _container(resources={"limits": _entries(lambda n: f"a.b/r{n}", lambda n: "1", bytes_each=24)})
                    ]
                )
            ]
        ),
    )
    yield "exponents", _job(
        [_task(containers=[_container(resources={"limits": _entries(
            lambda n: f"a.b/r{n}", lambda n: f"1e{n}", bytes_each=28)})])]
    )  # fmt: skip
    yield "long numbers", _job(
        [_task(containers=[_container(resources={"limits": _entries(
            lambda n: f"a.b/r{n}", lambda n: "9" * 1000, bytes_each=1100)})])]
    )  # fmt: skip
    yield (
        "a long number",
        _job(
            [
                _task(
                    containers=[
                        _container(resources={"limits": {"cpu": "9" * 2_900_000}, "requests": {"cpu": "1e999999999"}})
                    ]
                )
            ]
        ),
    )
    yield (
        "a long fraction",
        _job(
            [
                _task(
                    containers=[
                        _container(resources={"limits": {"cpu": "0." + "1" * 2_900_000, "memory": "1E-999999999"}})
                    ]
                )
            ]
        ),
    )
    yield (
        "many policies",
        _job(
            [_task()],
            policies=_many(lambda n: {"event": "PodFailed", "action": "RestartJob"}, bytes_each=44, values_each=3),
        ),
    )
    yield (
        "policies of many events",
        _job(
            [_task()],
            policies=[{"events": _many(lambda n: "PodFailed", bytes_each=12, values_each=1), "action": "AbortJob"}],
        ),
    )
    yield (
        "policies with exit codes",
        _job(
            [_task()],
            policies=_many(lambda n: {"exitCode": n + 1, "action": "RestartJob"}, bytes_each=44, values_each=3),
        ),
    )
    yield "long timeouts", _job(
        [_task()], policies=_many(
            lambda n: {"event": "PodFailed", "action": "RestartJob", "timeout": "1h" * 200}, bytes_each=460,
            values_each=4)
    )  # fmt: skip
    yield (
        "a long timeout",
        _job([_task()], policies=[{"event": "PodFailed", "action": "RestartJob", "timeout": "1.1h" * 700_000}]),
    )
    yield "many plugins", _job([_task()], plugins=_entries(lambda n: f"p{n}", lambda n: [], bytes_each=14))
    yield "many arguments", _job(
        [_task()], plugins={"svc": _many(lambda n: "--publish-not-ready-addresses", bytes_each=32, values_each=1),
                            "mpi": _many(lambda n: "--port=1", bytes_each=50, values_each=2)}
    )  # fmt: skip
    yield (
        "many volumes of the job",
        _job(
            [_task()],
            volumes=_many(lambda n: {"mountPath": f"/m{n}", "volumeClaimName": f"c{n}"}, bytes_each=55, values_each=3),
        ),
    )
    yield "a huge gang", _job([_task(replicas=2**31 - 1), _task("u", replicas=2**31 - 1)], plugins={"svc": []})
    yield "long names", _job([_task("t" * 2_900_000)])
    yield "a long image", _job([_task(containers=[_container(image="a/" * 1_400_000)])])
    yield "a long image with dots", _job([_task(containers=[_container(image="a." * 1_400_000 + "!")])])
    yield "a long command", _job([_task(containers=[_container(command=["$(A)" * 700_000])])])
    yield "many labels", _job(
        [{"name": "t", "template": {"metadata": {"labels": _entries(lambda n: f"l{n}", lambda n: "v", bytes_each=14)},
                                    "spec": {"containers": [_container()]}}}]
    )  # fmt: skip
    yield (
        "long label",
        _job([{"name": "t", "template": {"metadata": {"labels": {"a" * 1_400_000: "-" * 1_400_000}}, "spec": {}}}]),
    )
    for field in ("tolerations", "topologySpreadConstraints", "hostAliases", "imagePullSecrets", "readinessGates"):
        yield f"many {field}", _job(
            [{"name": "t", "template": {"spec": {"containers": [_container()], field: _many(
                lambda n: {"key": f"k{n}", "operator": "Exists", "topologyKey": "k", "maxSkew": 1, "ip": "1.1.1.1",
                           "whenUnsatisfiable": "DoNotSchedule", "conditionType": f"c{n}", "name": f"n{n}"},
                bytes_each=170, values_each=9)}}}]
        )  # fmt: skip
    terms = _many(lambda n: {"matchExpressions": [{"key": f"k{n}", "operator": "In", "values": ["v"]}]}, bytes_each=75,
                  values_each=7)  # fmt: skip
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    yield (
        "many terms",
        _job([{"name": "t", "template": {"spec": {"containers": [_container()], "affinity": affinity}}}]),
    )
    yield "many unknown fields", _job([_task()], **_entries(lambda n: f"x{n}", lambda n: n, bytes_each=16))
    yield "many annotations", {**_job([_task()]), "metadata": {
        "name": "n", "annotations": _entries(lambda n: f"a{n}", lambda n: "v", bytes_each=14)}}  # fmt: skip


def _pods() -> Iterator[tuple[str, Json]]:
    ours = {"schedulerName": "volcano"}
    yield (
        "many containers",
        named({**ours, "containers": _many(lambda n: _container(name=f"c{n}"), bytes_each=30, values_each=3)}),
    )
    yield (
        "a long budget",
        named({**ours, "containers": [_container()]}, annotations={"volcano.sh/jdb-min-available": "9" * 2_900_000}),
    )
    yield (
        "a long percentage",
        named(
            {**ours, "containers": [_container()]},
            annotations={"volcano.sh/jdb-max-unavailable": "1" * 2_900_000 + "%"},
        ),
    )


def _others() -> Iterator[tuple[str, str, Json]]:
    members = _many(
        lambda n: {"type": "Node", "selector": {"regexMatch": {"pattern": "(a+)+b{1,9}"}}}, bytes_each=75, values_each=5
    )
    yield "/hypernodes/validate", "many patterns", named({"tier": 1, "members": members})
    different = _many(
        lambda n: {"type": "Node", "selector": {"regexMatch": {"pattern": f"(a|{n})*[a-z]{{1,99}}"}}},
        bytes_each=85,
        values_each=5,
    )
    yield "/hypernodes/validate", "many different patterns", named({"tier": 1, "members": different})
    dear = _many(
        lambda n: {"type": "Node", "selector": {"regexMatch": {"pattern": rf"\pL{{20}}{n}"}}},
        bytes_each=80,
        values_each=5,
    )
    yield "/hypernodes/validate", "many dear patterns", named({"tier": 1, "members": dear})
    refused = _many(
        lambda n: {"type": "Node", "selector": {"regexMatch": {"pattern": rf"\pL{{99}}{n}"}}},
        bytes_each=80,
        values_each=5,
    )
    yield "/hypernodes/validate", "many refused patterns", named({"tier": 1, "members": refused})
    for name, pattern in (
        ("a long pattern", "a" * 2_900_000), ("a long class", f"[{'a-z' * 900_000}]"), ("repeats", "(a{1000}){1000}"),
        ("nested groups", "(" * 30_000 + ")" * 30_000), ("nested repeats", "((((a{9}){9}){9}){9}){9}"),
        ("alternatives", "|".join("ab" for _ in range(900_000))), ("nested stars", "(" * 90 + "a*" + ")*" * 90),
        ("long unicode", "☃" * 900_000), ("repeated class", r"(\pL{500}){2}" * 50),
    ):  # fmt: skip
        member = {"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}}
        yield "/hypernodes/validate", name, named({"tier": 1, "members": [member]})
    chain = _many(lambda n: {"name": f"f{n}", "dependsOn": {"targets": [f"f{n - 1}"]}}, bytes_each=55, values_each=5)
    yield "/jobflows/validate", "a chain", named({"flows": chain})
    dense = [{"name": f"f{n}", "dependsOn": {"targets": [f"f{m}" for m in range(n)]}} for n in range(290)]
    yield "/jobflows/validate", "all depend on all", named({"flows": dense})
    unknown = _many(lambda n: {"name": f"f{n}", "dependsOn": {"targets": ["x"]}}, bytes_each=55, values_each=5)
    yield "/jobflows/validate", "unknown targets", named({"flows": unknown})
    for name, schedule in (
        ("a long line", "* " * 1_400_000), ("a long list", ",".join(["1"] * 900_000) + " * * * *"),
        ("long numbers", f"{'9' * 2_900_000} * * * *"), ("steps", "*/1 */1 */1 */1 */1"),
        ("ranges", ",".join(["0-59"] * 500_000) + " * * * *"), ("never", "0 0 31 2 *"), ("spaces", " " * 2_900_000),
    ):  # fmt: skip
        spec = {"schedule": schedule, "jobTemplate": {"spec": _job([_task()])["spec"]}}
        yield "/cronjobs/validate", name, named(spec)
    yield "/cronjobs/validate", "a long zone", named({"schedule": "* * * * *", "timeZone": "A" * 2_900_000})
    yield "/cronjobs/validate", "a zone of dots", named({"schedule": "* * * * *", "timeZone": "../" * 900_000})
    amounts = _entries(lambda n: f"a.b/r{n}", lambda n: "1", bytes_each=80)
    yield (
        "/queues/validate",
        "many resources",
        named({"capability": amounts, "deserved": amounts, "guarantee": {"resource": amounts}}),
    )
    huge = _entries(lambda n: f"a.b/r{n}", lambda n: f"1e{n}", bytes_each=90)
    yield (
        "/queues/validate",
        "exponents",
        named({"capability": huge, "deserved": huge, "guarantee": {"resource": huge}}),
    )
    yield (
        "/queues/validate",
        "long numbers",
        named({"capability": {"cpu": "9" * 1_400_000}, "deserved": {"cpu": "8" * 1_400_000}}),
    )
    policies = _many(
        lambda n: {"name": f"s{n}", "minSubGroups": 1, "labelSelector": {"matchLabels": {"a": "b"}}},
        bytes_each=75,
        values_each=5,
    )
    yield (
        "/podgroups/validate",
        "many subgroups",
        named({"queue": "default", "minMember": 1, "subGroupPolicy": policies}),
    )


def hostile() -> Iterator[tuple[str, str, bytes]]:
    """Path, description and body."""
    for name, obj in _jobs():
        for path in ("/jobs/mutate", "/jobs/validate"):
            yield path, name, body_of(path, obj)
        yield "/jobs/validate", f"{name}, changed", body_of("/jobs/validate", obj, operation="UPDATE", old=obj)
        cron = named({"schedule": "* * * * *", "jobTemplate": {"spec": obj["spec"]}})
        yield "/cronjobs/validate", name, body_of("/cronjobs/validate", cron)
    for name, obj in _pods():
        for path in ("/pods/mutate", "/pods/validate"):
            yield path, name, body_of(path, obj)
    for path, name, obj in _others():
        yield path, name, body_of(path, obj)
        if path == "/queues/validate":
            yield path, f"{name}, changed", body_of(path, obj, operation="UPDATE", old=obj)
