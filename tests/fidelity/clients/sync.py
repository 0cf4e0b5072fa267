"""Sessions of the synchronous client: one function a topic."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from kubernetes import client, config, dynamic, watch
from kubernetes.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

from tests.fidelity.clients.observing import Observer, Session
from tests.fidelity.golden import Answers
from tests.fidelity.servers import Server
from tests.fidelity.waiting import until

Json = dict[str, Any]
VOLCANO = ("batch.volcano.sh", "v1alpha1")


def connect(server: Server) -> client.ApiClient:
    """A connection of its own; nothing is set for the whole process."""
    settings = client.Configuration()
    config.load_kube_config(str(server.kubeconfig), client_configuration=settings)
    return client.ApiClient(settings)


def prepare(server: Server, namespace: str) -> None:
    """Make the namespace, and return once pods may be created in it."""
    with connect(server) as connection:
        core = client.CoreV1Api(connection)
        core.create_namespace({"metadata": {"name": namespace}})
        until(
            f"{namespace} has a service account",
            lambda: any(
                one.metadata.name == "default" for one in core.list_namespaced_service_account(namespace).items
            ),
        )


def _session(play: Callable[[client.ApiClient, Observer, str], None]) -> Session:
    def run(server: Server, namespace: str) -> Answers:
        with connect(server) as connection:
            observer = Observer(namespace, connection.sanitize_for_serialization)
            play(connection, observer, namespace)
            return observer.answers

    return run


def _config_map(name: str, data: dict[str, str] | None = None, **labels: str) -> client.V1ConfigMap:
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels or None), data=data)


def _pod(name: str, **spec: Any) -> client.V1Pod:
    container = client.V1Container(name="main", image="trainer", command=["true"])
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name, labels={"app": "x"}),
        spec=client.V1PodSpec(containers=[container], restart_policy="Never", **spec),
    )


def _job(name: str, **spec: Any) -> Json:
    container = {"name": "main", "image": "trainer"}
    tasks = [{"name": "worker", "replicas": 2, "template": {"spec": {"containers": [container]}}}]
    return {
        "apiVersion": "/".join(VOLCANO),
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"minAvailable": 2, "queue": "default", "tasks": tasks, **spec},
    }


def objects(connection: client.ApiClient, seen: Observer, namespace: str) -> None:
    """Create, read, replace and delete, and what goes wrong on the way."""
    core = client.CoreV1Api(connection)
    made = seen.ask("create", lambda: core.create_namespaced_config_map(namespace, _config_map("a", {"k": "1"}, x="y")))
    seen.ask("create again", lambda: core.create_namespaced_config_map(namespace, _config_map("a")))
    seen.ask("create as a dict", lambda: core.create_namespaced_config_map(namespace, {"metadata": {"name": "d"}}))
    generated = {"metadata": {"generateName": "g-"}}
    seen.ask("create with a generated name", lambda: core.create_namespaced_config_map(namespace, generated))
    seen.ask("create with a bad name", lambda: core.create_namespaced_config_map(namespace, _config_map("Bad_Name")))
    seen.ask("create nameless", lambda: core.create_namespaced_config_map(namespace, {"data": {"a": "b"}}))
    nowhere = "there-is-no-such-namespace"
    seen.ask("create nowhere", lambda: core.create_namespaced_config_map(nowhere, _config_map("a")))
    elsewhere = {"metadata": {"name": "e", "namespace": "default"}}
    seen.ask("create for elsewhere", lambda: core.create_namespaced_config_map(namespace, elsewhere))
    wrong = {"metadata": {"name": "w"}, "data": {"a": 1}}
    seen.ask("create with a number", lambda: core.create_namespaced_config_map(namespace, wrong))
    other = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "w"}}
    seen.ask("create another kind", lambda: core.create_namespaced_config_map(namespace, other))
    versioned = {"metadata": {"name": "v", "resourceVersion": "5"}}
    seen.ask("create with a version", lambda: core.create_namespaced_config_map(namespace, versioned))
    dry = _config_map("dry")
    seen.ask("create dry", lambda: core.create_namespaced_config_map(namespace, dry, dry_run="All"))
    seen.ask("create half dry", lambda: core.create_namespaced_config_map(namespace, dry, dry_run="Half"))
    unknown = {"metadata": {"name": "u"}, "colour": "red"}
    for strictness in ("Strict", "Warn", "Ignore", "Sometimes"):
        seen.ask(
            f"create unknown fields, {strictness}",
            lambda strictness=strictness: core.create_namespaced_config_map(
                namespace, unknown, field_validation=strictness, dry_run="All"
            ),
        )
    seen.ask("read", lambda: core.read_namespaced_config_map("a", namespace))
    seen.ask("read pretty", lambda: core.read_namespaced_config_map("a", namespace, pretty="true"))
    seen.ask("read nothing", lambda: core.read_namespaced_config_map("none", namespace))
    seen.ask("read nothing of another kind", lambda: core.read_namespaced_pod("none", namespace))
    made.data["k"] = "2"
    seen.ask("replace", lambda: core.replace_namespaced_config_map("a", namespace, made))
    seen.ask("replace what is old", lambda: core.replace_namespaced_config_map("a", namespace, made))
    made.metadata.resource_version = None
    seen.ask("replace whatever is there", lambda: core.replace_namespaced_config_map("a", namespace, made))
    seen.ask("replace without change", lambda: core.replace_namespaced_config_map("a", namespace, made))
    made.metadata.uid = "00000000-0000-0000-0000-000000000000"
    seen.ask("replace another", lambda: core.replace_namespaced_config_map("a", namespace, made))
    seen.ask("replace nothing", lambda: core.replace_namespaced_config_map("none", namespace, _config_map("none")))
    seen.ask("replace under another name", lambda: core.replace_namespaced_config_map("a", namespace, _config_map("b")))
    stale = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="not-this-one"))
    seen.ask("delete another", lambda: core.delete_namespaced_config_map("a", namespace, body=stale))
    old = client.V1DeleteOptions(preconditions=client.V1Preconditions(resource_version="1"))
    seen.ask("delete what is old", lambda: core.delete_namespaced_config_map("a", namespace, body=old))
    policy = client.V1DeleteOptions(propagation_policy="Sometimes")
    seen.ask("delete by a wrong policy", lambda: core.delete_namespaced_config_map("a", namespace, body=policy))
    seen.ask("delete dry", lambda: core.delete_namespaced_config_map("a", namespace, dry_run="All"))
    seen.ask("delete", lambda: core.delete_namespaced_config_map("a", namespace))
    seen.ask("delete again", lambda: core.delete_namespaced_config_map("a", namespace))
    held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    core.create_namespaced_config_map(namespace, held)
    seen.ask("delete what is held", lambda: core.delete_namespaced_config_map("held", namespace))
    seen.ask("read what is held", lambda: core.read_namespaced_config_map("held", namespace))
    add = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
    seen.ask("hold it more", lambda: core.patch_namespaced_config_map("held", namespace, add))
    free = {"metadata": {"finalizers": None}}
    seen.ask("let it go", lambda: core.patch_namespaced_config_map("held", namespace, free))
    seen.ask("and it is gone", lambda: core.read_namespaced_config_map("held", namespace))
    seen.ask(
        "delete the rest",
        lambda: core.delete_collection_namespaced_config_map(namespace, field_selector="metadata.name=d"),
    )


def patches(connection: client.ApiClient, seen: Observer, namespace: str) -> None:
    """The types of patches; a list is sent as a JSON patch, all else as the client decides."""
    core = client.CoreV1Api(connection)
    core.create_namespaced_config_map(namespace, _config_map("a", {"k": "1"}))
    core.create_namespaced_pod(namespace, _pod("p"))
    patch = core.patch_namespaced_config_map
    bodies: Iterable[tuple[str, Any]] = (
        ("of a mapping", {"data": {"k": "2"}}),
        ("of a list", [{"op": "add", "path": "/data/z", "value": "9"}]),
        ("that tests", [{"op": "test", "path": "/data/z", "value": "8"}]),
        ("that removes nothing", [{"op": "remove", "path": "/data/none"}]),
        ("that adds to nothing", [{"op": "add", "path": "/nothing/here", "value": 1}]),
        ("that moves", [{"op": "move", "from": "/data/z", "path": "/data/y"}]),
        ("that copies", [{"op": "copy", "from": "/data/y", "path": "/data/x"}]),
        ("of an unknown operation", [{"op": "fly", "path": "/data"}]),
        ("of a wrong type", {"data": "text"}),
        ("of an empty mapping", {}),
        ("of an empty list", []),
        ("that removes a key", {"data": {"y": None}}),
        ("with a stale version", {"metadata": {"resourceVersion": "1"}, "data": {"k": "3"}}),
        ("of immutable metadata", {"metadata": {"uid": "other"}}),
        ("with a bad label", {"metadata": {"labels": {"a": "bad label"}}}),
        ("with an unknown field", {"colour": "red"}),
    )
    for what, body in bodies:
        seen.ask(f"patch {what}", lambda body=body: patch("a", namespace, body))
    seen.ask("patch nothing", lambda: patch("none", namespace, {"data": {}}))
    for kind in ("application/merge-patch+json", "application/strategic-merge-patch+json", "application/yaml"):
        seen.ask(f"patch as {kind}", lambda kind=kind: patch("a", namespace, {"data": {"t": "1"}}, _content_type=kind))
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "1"}}

    def apply(body: Json, **options: Any) -> Any:
        return patch("applied", namespace, body, _content_type="application/apply-patch+yaml", **options)

    seen.ask("apply", lambda: apply(applied, field_manager="one"))
    seen.ask("apply without a manager", lambda: apply(applied))
    second = {**applied, "data": {"a": "2"}}
    seen.ask("apply against another", lambda: apply(second, field_manager="two"))
    seen.ask("apply by force", lambda: apply(second, field_manager="two", force=True))
    seen.ask("apply without the field", lambda: apply({**applied, "data": {}}, field_manager="two"))
    seen.ask("apply another name", lambda: apply({**applied, "metadata": {"name": "b"}}, field_manager="one"))
    change = {"spec": {"containers": [{"name": "main", "image": "trainer:2"}]}}
    seen.ask("patch a pod's image", lambda: core.patch_namespaced_pod("p", namespace, change))
    more = {"spec": {"containers": [{"name": "side", "image": "side"}]}}
    seen.ask("patch a pod with more", lambda: core.patch_namespaced_pod("p", namespace, more))
    status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    seen.ask("patch a pod's status", lambda: core.patch_namespaced_pod_status("p", namespace, status))
    second_condition = {"status": {"conditions": [{"type": "PodScheduled", "status": "True"}]}}
    seen.ask("patch a condition", lambda: core.patch_namespaced_pod_status("p", namespace, second_condition))
    seen.ask(
        "patch the status as spec", lambda: core.patch_namespaced_pod("p", namespace, {"status": {"phase": "Failed"}})
    )


def lists(connection: client.ApiClient, seen: Observer, namespace: str) -> None:
    """Pages, selectors and versions."""
    core = client.CoreV1Api(connection)
    for number in range(5):
        core.create_namespaced_secret(
            namespace, {"metadata": {"name": f"s{number}", "labels": {"number": str(number), "own": "1"}}}
        )

    def listed(**options: Any) -> Any:
        found = core.list_namespaced_secret(namespace, **options)
        return {
            "names": [one.metadata.name for one in found.items],
            "continues": bool(found.metadata._continue),
            "remaining": found.metadata.remaining_item_count,
        }

    seen.ask("list", listed)
    selectors = (
        "own",
        "!own",
        "number=3",
        "number in (1,2)",
        "number notin (1,2)",
        "number!=1,own",
        "number>2",
        "a b",
        "=",
    )
    for selector in selectors:
        seen.ask(f"list labels {selector}", lambda selector=selector: listed(label_selector=selector))
    for selector in ("metadata.name=s1", "metadata.name!=s1", "type=Opaque", "spec.x=1", "metadata.name", "a==b=c"):
        seen.ask(f"list fields {selector}", lambda selector=selector: listed(field_selector=selector))
    page = core.list_namespaced_secret(namespace, limit=2)
    seen.ask("first page", lambda: listed(limit=2))
    token = page.metadata._continue
    seen.ask("next page", lambda: listed(limit=2, _continue=token))
    seen.ask("rest", lambda: listed(_continue=token))
    seen.ask("next page with a version", lambda: listed(limit=2, _continue=token, resource_version="1"))
    seen.ask("a broken token", lambda: listed(limit=2, _continue="broken"))
    seen.ask("selected page", lambda: listed(limit=2, label_selector="own"))
    seen.ask("from the cache", lambda: listed(resource_version="0"))
    seen.ask("at least", lambda: listed(resource_version=page.metadata.resource_version))
    matched = {"resource_version_match": "NotOlderThan"}
    seen.ask("match without version", lambda: listed(**matched))
    seen.ask("match", lambda: listed(resource_version="1", **matched))
    seen.ask("a wrong match", lambda: listed(resource_version="1", resource_version_match="Sometimes"))
    seen.ask("a wrong version", lambda: listed(resource_version="many"))
    seen.ask("no such namespace", lambda: [one.metadata.name for one in core.list_namespaced_secret("none-such").items])
    everywhere = core.list_secret_for_all_namespaces
    seen.ask("everywhere", lambda: [one.metadata.name for one in everywhere(label_selector="own").items])
    seen.ask(
        "delete the selected",
        lambda: core.delete_collection_namespaced_secret(namespace, label_selector="number in (0,1)"),
    )
    seen.ask("list what is left", listed)


def watches(connection: client.ApiClient, seen: Observer, namespace: str) -> None:
    """Events, in order, from a version on; and where a watch is refused."""
    core = client.CoreV1Api(connection)
    start = core.list_namespaced_secret(namespace).metadata.resource_version
    for name in ("a", "b"):
        core.create_namespaced_secret(namespace, {"metadata": {"name": name, "labels": {"x": "1"}}})
    core.patch_namespaced_secret("a", namespace, {"metadata": {"labels": {"x": "2"}}})
    core.patch_namespaced_secret("b", namespace, {"data": {"k": "dg=="}})
    core.delete_namespaced_secret("b", namespace)

    def events(count: int, **options: Any) -> Any:
        stream = watch.Watch().stream(core.list_namespaced_secret, namespace, timeout_seconds=5, **options)
        return [
            {"type": event["type"], "name": event["object"].metadata.name, "labels": event["object"].metadata.labels}
            for event in itertools.islice(stream, count)
        ]

    seen.ask("everything since", lambda: events(5, resource_version=start))
    seen.ask("selected", lambda: events(4, resource_version=start, label_selector="x=1"))
    seen.ask("of one", lambda: events(3, resource_version=start, field_selector="metadata.name=b"))
    seen.ask("what is there", lambda: events(1))
    seen.ask("a wrong version", lambda: events(1, resource_version="many"))
    seen.ask("a wrong selector", lambda: events(1, label_selector="a b"))
    custom = client.CustomObjectsApi(connection)
    custom.create_namespaced_custom_object(*VOLCANO, namespace, "jobs", _job("j"))
    stream = watch.Watch().stream(custom.list_namespaced_custom_object, *VOLCANO, namespace, "jobs", timeout_seconds=5)
    seen.ask(
        "of a job", lambda: [(one["type"], one["object"]["metadata"]["name"]) for one in itertools.islice(stream, 1)]
    )


def custom_objects(connection: client.ApiClient, seen: Observer, namespace: str) -> None:
    """Jobs, PodGroups and Queues through the API for kinds that the client has no types for."""
    api = client.CustomObjectsApi(connection)
    jobs = (*VOLCANO, namespace, "jobs")
    seen.ask("create", lambda: api.create_namespaced_custom_object(*jobs, _job("j")))
    seen.ask("create again", lambda: api.create_namespaced_custom_object(*jobs, _job("j")))
    for what, spec in (
        ("a wrong type", {"minAvailable": "two"}),
        ("below zero", {"minAvailable": -1}),
        ("a wrong policy", {"policies": [{"event": "PodLost", "action": "Dance"}]}),
        ("tasks of a wrong shape", {"tasks": {"a": 1}}),
        ("an unknown field", {"colour": "red"}),
    ):
        body = _job("wrong", **spec)
        seen.ask(
            f"create with {what}", lambda body=body: api.create_namespaced_custom_object(*jobs, body, dry_run="All")
        )
        seen.ask(
            f"create with {what}, strictly",
            lambda body=body: api.create_namespaced_custom_object(
                *jobs, body, dry_run="All", field_validation="Strict"
            ),
        )
    seen.ask("get", lambda: api.get_namespaced_custom_object(*jobs, "j"))
    seen.ask("get nothing", lambda: api.get_namespaced_custom_object(*jobs, "none"))
    seen.ask("get of no kind", lambda: api.get_namespaced_custom_object(*VOLCANO, namespace, "things", "j"))
    seen.ask("get of no version", lambda: api.get_namespaced_custom_object(VOLCANO[0], "v9", namespace, "jobs", "j"))
    seen.ask("list", lambda: api.list_namespaced_custom_object(*jobs))
    seen.ask("patch", lambda: api.patch_namespaced_custom_object(*jobs, "j", {"spec": {"maxRetry": 4}}))
    listed = [{"op": "replace", "path": "/spec/maxRetry", "value": 5}]
    seen.ask("patch by operations", lambda: api.patch_namespaced_custom_object(*jobs, "j", listed))
    bad = {"spec": {"maxRetry": "five"}}
    seen.ask("patch with a wrong type", lambda: api.patch_namespaced_custom_object(*jobs, "j", bad))
    strategic = "application/strategic-merge-patch+json"
    seen.ask(
        "patch strategically",
        lambda: api.patch_namespaced_custom_object(*jobs, "j", {"spec": {}}, _content_type=strategic),
    )
    status = {"status": {"state": {"phase": "Running"}}}
    seen.ask("patch the status", lambda: api.patch_namespaced_custom_object_status(*jobs, "j", status))
    seen.ask("patch the status elsewhere", lambda: api.patch_namespaced_custom_object(*jobs, "j", status))
    seen.ask("get the status", lambda: api.get_namespaced_custom_object_status(*jobs, "j"))
    seen.ask("scale", lambda: api.get_namespaced_custom_object_scale(*jobs, "j"))
    fresh = api.get_namespaced_custom_object(*jobs, "j")
    fresh["spec"]["maxRetry"] = 7
    seen.ask("replace", lambda: api.replace_namespaced_custom_object(*jobs, "j", fresh))
    seen.ask("replace what is old", lambda: api.replace_namespaced_custom_object(*jobs, "j", fresh))
    seen.ask("replace without a version", lambda: api.replace_namespaced_custom_object(*jobs, "j", _job("j")))
    queues = ("scheduling.volcano.sh", "v1beta1", "queues")
    queue = {"metadata": {"name": f"{namespace}-queue"}, "spec": {"weight": 1}}
    seen.ask("create a queue untyped", lambda: api.create_cluster_custom_object(*queues, queue))
    typed = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", **queue}
    seen.ask("create a queue", lambda: api.create_cluster_custom_object(*queues, typed))
    seen.ask("delete the queue", lambda: api.delete_cluster_custom_object(*queues, f"{namespace}-queue"))
    seen.ask("delete", lambda: api.delete_namespaced_custom_object(*jobs, "j", propagation_policy="Foreground"))
    seen.ask("delete again", lambda: api.delete_namespaced_custom_object(*jobs, "j"))


def dynamically(connection: client.ApiClient, seen: Observer, namespace: str) -> None:
    """The dynamic client: discovery, and every verb by it."""
    api = seen.ask("discover", lambda: None) or dynamic.DynamicClient(connection)
    seen.ask("of no kind", lambda: api.resources.get(api_version="v1", kind="Nothing"))
    maps = api.resources.get(api_version="v1", kind="ConfigMap")
    jobs = api.resources.get(api_version="/".join(VOLCANO), kind="Job")
    for name, found in (("ConfigMap", maps), ("Job", jobs)):
        reported = {
            "name": found.name,
            "verbs": sorted(found.verbs),
            "short": found.short_names,
            "namespaced": found.namespaced,
        }
        seen.ask(f"about {name}", lambda reported=reported: reported)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1"}}
    seen.ask("create", lambda: maps.create(body=body, namespace=namespace).to_dict())
    seen.ask("create again", lambda: maps.create(body=body, namespace=namespace).to_dict())
    seen.ask("get", lambda: maps.get(name="a", namespace=namespace).to_dict())
    seen.ask("get nothing", lambda: maps.get(name="none", namespace=namespace).to_dict())
    merge = "application/merge-patch+json"
    changed = {"metadata": {"name": "a"}, "data": {"k": "2"}}
    seen.ask("patch", lambda: maps.patch(body=changed, namespace=namespace, content_type=merge).to_dict())
    other = {**body, "data": {"k": "3"}}
    seen.ask("apply", lambda: maps.server_side_apply(body=other, namespace=namespace, field_manager="d").to_dict())
    forced = {"field_manager": "d", "force_conflicts": True}
    seen.ask("apply by force", lambda: maps.server_side_apply(body=other, namespace=namespace, **forced).to_dict())
    seen.ask(
        "list",
        lambda: [one.metadata.name for one in maps.get(namespace=namespace, field_selector="metadata.name=a").items],
    )
    seen.ask("create a job", lambda: jobs.create(body=_job("j"), namespace=namespace).to_dict())
    seen.ask("a job's status", lambda: jobs.status.get(name="j", namespace=namespace).to_dict())
    seen.ask("delete the job", lambda: jobs.delete(name="j", namespace=namespace).to_dict())
    seen.ask("delete", lambda: maps.delete(name="a", namespace=namespace).to_dict())


def pods(connection: client.ApiClient, seen: Observer, namespace: str) -> None:
    """Binding, eviction, status, logs: the subresources of pods."""
    core = client.CoreV1Api(connection)
    node = f"{namespace}-node"
    core.create_node({"metadata": {"name": node}})
    seen.ask("create", lambda: core.create_namespaced_pod(namespace, _pod("p")))
    seen.ask("logs of an unbound pod", lambda: core.read_namespaced_pod_log("p", namespace))
    seen.ask("logs of nothing", lambda: core.read_namespaced_pod_log("none", namespace))
    seen.ask("logs of no container", lambda: core.read_namespaced_pod_log("p", namespace, container="none"))

    def binding(name: str, target: str) -> Json:
        return {"metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": target}}

    def bind(name: str, target: str) -> Any:
        return core.create_namespaced_pod_binding(name, namespace, binding(name, target), _preload_content=False).json()

    seen.ask("bind nothing", lambda: bind("none", node))
    seen.ask("bind nowhere", lambda: bind("p", ""))
    seen.ask("bind", lambda: bind("p", node))
    seen.ask("bind again", lambda: bind("p", node))
    seen.ask("read what is bound", lambda: core.read_namespaced_pod("p", namespace))
    seen.ask("patch the node name", lambda: core.patch_namespaced_pod("p", namespace, {"spec": {"nodeName": "other"}}))
    eviction = {"metadata": {"name": "p", "namespace": namespace}}
    dry = {**eviction, "deleteOptions": {"dryRun": ["All"]}}
    seen.ask("evict dry", lambda: core.create_namespaced_pod_eviction("p", namespace, dry))
    seen.ask("evict nothing", lambda: core.create_namespaced_pod_eviction("none", namespace, eviction))
    seen.ask("evict another", lambda: core.create_namespaced_pod_eviction("q", namespace, eviction))
    budget = client.V1PodDisruptionBudget(
        metadata=client.V1ObjectMeta(name="b"),
        spec=client.V1PodDisruptionBudgetSpec(
            min_available=1, selector=client.V1LabelSelector(match_labels={"app": "nothing"})
        ),
    )
    seen.ask(
        "a budget", lambda: client.PolicyV1Api(connection).create_namespaced_pod_disruption_budget(namespace, budget)
    )
    seen.ask("evict", lambda: core.create_namespaced_pod_eviction("p", namespace, eviction))
    seen.ask("a pod that goes", lambda: core.read_namespaced_pod("p", namespace))
    seen.ask("end it", lambda: core.delete_namespaced_pod("p", namespace, grace_period_seconds=0))
    core.create_namespaced_pod(namespace, _pod("q", scheduling_gates=[{"name": "example.com/gate"}]))
    seen.ask("bind a gated pod", lambda: bind("q", node))
    seen.ask("open the gate", lambda: core.patch_namespaced_pod("q", namespace, {"spec": {"schedulingGates": None}}))
    seen.ask(
        "gate it again",
        lambda: core.patch_namespaced_pod("q", namespace, {"spec": {"schedulingGates": [{"name": "g"}]}}),
    )
    seen.ask("delete", lambda: core.delete_namespaced_pod("q", namespace))
    seen.ask("a pod with a priority", lambda: core.create_namespaced_pod(namespace, _pod("r", priority=5)))
    seen.ask("a pod of no class", lambda: core.create_namespaced_pod(namespace, _pod("r", priority_class_name="none")))
    seen.ask(
        "a pod of no account", lambda: core.create_namespaced_pod(namespace, _pod("r", service_account_name="none"))
    )
    seen.ask(
        "a pod of a system class",
        lambda: core.create_namespaced_pod(namespace, _pod("s", priority_class_name="system-node-critical")),
    )
    core.delete_node(node)


def quotas(connection: client.ApiClient, seen: Observer, namespace: str) -> None:
    """Limits, quotas and defaults that admission holds."""
    core = client.CoreV1Api(connection)
    item = {"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "100m"}}
    item |= {"default": {"cpu": "1"}, "defaultRequest": {"cpu": "500m"}}
    limits = {"metadata": {"name": "l"}, "spec": {"limits": [item]}}
    seen.ask("a limit range", lambda: core.create_namespaced_limit_range(namespace, limits))
    seen.ask("a pod with defaults", lambda: core.create_namespaced_pod(namespace, _pod("a")))

    def sized(name: str, **resources: Any) -> Json:
        container = {"name": "main", "image": "i", "resources": resources}
        return {"metadata": {"name": name}, "spec": {"containers": [container]}}

    for what, resources in (
        ("too much", {"limits": {"cpu": "3"}}),
        ("too little", {"requests": {"cpu": "10m"}}),
        ("more than its limit", {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
        ("only a limit", {"limits": {"cpu": "2"}}),
    ):
        body = sized("b", **resources)
        seen.ask(f"a pod with {what}", lambda body=body: core.create_namespaced_pod(namespace, body, dry_run="All"))
    hard = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "2", "requests.cpu": "1500m"}}}
    seen.ask("a quota", lambda: core.create_namespaced_resource_quota(namespace, hard))
    used = {"status": {"hard": hard["spec"]["hard"], "used": {"pods": "1", "requests.cpu": "500m"}}}
    core.patch_namespaced_resource_quota_status("q", namespace, used)
    seen.ask("a pod within it", lambda: core.create_namespaced_pod(namespace, sized("c", requests={"cpu": "1"})))
    seen.ask("a pod beyond it", lambda: core.create_namespaced_pod(namespace, sized("d", requests={"cpu": "1"})))
    memory = {"metadata": {"name": "m"}, "spec": {"hard": {"requests.memory": "1Gi"}}}
    core.create_namespaced_resource_quota(namespace, memory)
    core.patch_namespaced_resource_quota_status(
        "m", namespace, {"status": {"hard": memory["spec"]["hard"], "used": {"requests.memory": "0"}}}
    )
    core.delete_namespaced_resource_quota("q", namespace)
    seen.ask("a pod that must say its memory", lambda: core.create_namespaced_pod(namespace, sized("e")))


def access(connection: client.ApiClient, seen: Observer, namespace: str) -> None:
    """Who may do what, tokens, and leases."""
    authorization = client.AuthorizationV1Api(connection)
    for what, spec in (
        ("of oneself", {"resourceAttributes": {"verb": "create", "resource": "pods", "namespace": namespace}}),
        ("of a path", {"nonResourceAttributes": {"verb": "get", "path": "/healthz"}}),
        ("of nothing", {}),
        ("of both", {"resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"verb": "get", "path": "/"}}),
    ):
        body = {"spec": spec}
        seen.ask(f"a review {what}", lambda body=body: authorization.create_self_subject_access_review(body))
        other = {"spec": {**spec, "user": "nobody-special"}}
        seen.ask(f"somebody's review {what}", lambda other=other: authorization.create_subject_access_review(other))
        local = {"metadata": {"namespace": namespace}, **other}
        seen.ask(
            f"somebody's local review {what}",
            lambda local=local: authorization.create_namespaced_local_subject_access_review(namespace, local),
        )
    seen.ask("who am I", lambda: client.AuthenticationV1Api(connection).create_self_subject_review({}))
    review = {"spec": {"token": "nonsense"}}
    seen.ask("whose token", lambda: client.AuthenticationV1Api(connection).create_token_review(review))
    leases = client.CoordinationV1Api(connection)
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}}
    seen.ask("a lease", lambda: leases.create_namespaced_lease(namespace, lease))
    seen.ask("a lease for no time", lambda: leases.create_namespaced_lease(
        namespace, {"metadata": {"name": "n"}, "spec": {"leaseDurationSeconds": 0}}))  # fmt: skip
    held = leases.read_namespaced_lease("l", namespace)
    held.spec.holder_identity = "you"
    seen.ask("taken over", lambda: leases.replace_namespaced_lease("l", namespace, held).spec.holder_identity)
    seen.ask("taken over late", lambda: leases.replace_namespaced_lease("l", namespace, held))
    client.Configuration.set_default(connection.configuration)
    lock = LeaseLock("election", namespace, "me")
    record = LeaderElectionRecord("me", "15", "2026-01-01 00:00:00+00:00", "2026-01-01 00:00:00+00:00")
    seen.ask("no leader yet", lambda: lock.get("election", namespace)[0])
    seen.ask("a leader", lambda: lock.create("election", namespace, record))
    seen.ask("the leader", lambda: lock.get("election", namespace)[1].holder_identity)


SESSIONS: dict[str, Session] = {
    "objects": _session(objects),
    "patches": _session(patches),
    "lists": _session(lists),
    "watches": _session(watches),
    "custom-objects": _session(custom_objects),
    "dynamic": _session(dynamically),
    "pods": _session(pods),
    "quotas": _session(quotas),
    "access": _session(access),
}
