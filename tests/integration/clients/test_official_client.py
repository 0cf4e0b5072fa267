"""The official Python client on the running program: typed APIs, watches, and the helpers that come with it."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client, utils, watch
from kubernetes.client.rest import ApiException
from kubernetes.informer import ADDED, DELETED, MODIFIED, SharedInformer
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

from tests.integration.clients.waiting import until

Json = dict[str, Any]


@pytest.fixture
def core(connection: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(connection)


@contextmanager
def refused(code: int, reason: str) -> Iterator[None]:
    """The server says no with that code, and a Status that the client can read the reason from."""
    with pytest.raises(ApiException) as error:
        yield
    assert error.value.status == code, error.value.body
    assert yaml.safe_load(error.value.body)["reason"] == reason


def config_map(name: str, data: dict[str, str] | None = None, **labels: str) -> client.V1ConfigMap:
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels or None), data=data)


def pod(name: str, command: str = "true", *, scheduler: str = "default-scheduler") -> client.V1Pod:
    container = client.V1Container(name="main", image="any", command=["sh", "-c", command])
    spec = client.V1PodSpec(containers=[container], restart_policy="Never", scheduler_name=scheduler)
    return client.V1Pod(metadata=client.V1ObjectMeta(name=name), spec=spec)


def test_an_object_from_its_creation_to_its_end(core: client.CoreV1Api, namespace: str):
    made = core.create_namespaced_config_map(namespace, config_map("a", {"k": "1"}, app="x"))
    assert made.metadata.uid and made.metadata.creation_timestamp.tzinfo is not None
    with refused(409, "AlreadyExists"):
        core.create_namespaced_config_map(namespace, config_map("a"))

    made.data["k"] = "2"
    replaced = core.replace_namespaced_config_map("a", namespace, made)
    assert replaced.data == {"k": "2"} and replaced.metadata.uid == made.metadata.uid
    with refused(409, "Conflict"):
        core.replace_namespaced_config_map("a", namespace, made)

    tried = core.patch_namespaced_config_map("a", namespace, {"data": {"k": "dry"}}, dry_run="All")
    assert tried.data == {"k": "dry"}
    assert core.read_namespaced_config_map("a", namespace).data == {"k": "2"}

    gone = core.delete_namespaced_config_map("a", namespace)
    assert gone["status"] == "Success" and gone["details"]["uid"] == made.metadata.uid
    with refused(404, "NotFound"):
        core.read_namespaced_config_map("a", namespace)


def test_the_three_kinds_of_patches(core: client.CoreV1Api, namespace: str):
    core.create_namespaced_pod(namespace, pod("p", scheduler="nobody"))
    # A dict is a strategic merge patch, as the client picks it: lists of containers merge by name.
    patch = {"spec": {"containers": [{"name": "main", "image": "other"}]}, "metadata": {"labels": {"a": "1"}}}
    patched = core.patch_namespaced_pod("p", namespace, patch, _content_type="application/strategic-merge-patch+json")
    assert patched.spec.containers[0].image == "other" and patched.spec.containers[0].command == ["sh", "-c", "true"]
    operations = [{"op": "test", "path": "/metadata/labels/a", "value": "1"}]
    operations.append({"op": "replace", "path": "/metadata/labels/a", "value": "2"})
    patched = core.patch_namespaced_pod("p", namespace, operations)
    assert patched.metadata.labels == {"a": "2"}
    body = {"metadata": {"labels": {"a": None, "b": "3"}}}
    patched = core.patch_namespaced_pod("p", namespace, body, _content_type="application/merge-patch+json")
    assert patched.metadata.labels == {"b": "3"}
    with refused(422, "Invalid"):
        core.patch_namespaced_pod("p", namespace, operations)


def test_a_list_comes_in_pages_that_show_one_moment(core: client.CoreV1Api, namespace: str):
    for number in range(7):
        core.create_namespaced_config_map(namespace, config_map(f"c{number}", own="1"))
    page = core.list_namespaced_config_map(namespace, label_selector="own=1", limit=3)
    assert page.metadata._continue
    core.delete_namespaced_config_map("c5", namespace)
    names = [one.metadata.name for one in page.items]
    version = page.metadata.resource_version
    while page.metadata._continue:
        page = core.list_namespaced_config_map(
            namespace, label_selector="own=1", limit=3, _continue=page.metadata._continue
        )
        assert page.metadata.resource_version == version
        names += [one.metadata.name for one in page.items]
    assert names == [f"c{number}" for number in range(7)]
    with refused(400, "BadRequest"):
        core.list_namespaced_config_map(namespace, _continue="rubbish", limit=3)


def test_a_watch_ends_in_time_and_goes_on_where_it_was(core: client.CoreV1Api, namespace: str):
    start = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, config_map("a"))
    core.patch_namespaced_config_map("a", namespace, {"data": {"k": "v"}})
    first = watch.Watch()
    seen = [
        (event["type"], event["object"].metadata.name)
        for event in first.stream(core.list_namespaced_config_map, namespace, resource_version=start, timeout_seconds=1)
    ]
    assert seen == [("ADDED", "a"), ("MODIFIED", "a")]

    core.delete_namespaced_config_map("a", namespace)
    core.create_namespaced_config_map(namespace, config_map("b"))
    second = watch.Watch()
    later: list[tuple[str, str]] = []
    for event in second.stream(
        core.list_namespaced_config_map, namespace, resource_version=first.resource_version, timeout_seconds=20
    ):
        later.append((event["type"], event["object"].metadata.name))
        if len(later) == 2:
            second.stop()
    assert later == [("DELETED", "a"), ("ADDED", "b")]


def test_a_watch_that_selects_sees_objects_come_and_go(core: client.CoreV1Api, namespace: str):
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, config_map("a", on="no"))
    for value in ("yes", "no"):
        core.patch_namespaced_config_map("a", namespace, {"metadata": {"labels": {"on": value}}})
    core.create_namespaced_config_map(namespace, config_map("end", on="yes"))
    watcher = watch.Watch()
    seen: list[tuple[str, str]] = []
    for event in watcher.stream(
        core.list_namespaced_config_map,
        namespace,
        label_selector="on=yes",
        resource_version=version,
        timeout_seconds=20,
    ):
        seen.append((event["type"], event["object"].metadata.name))
        if event["object"].metadata.name == "end":
            watcher.stop()
    assert seen == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "end")]


def test_binding_status_and_eviction_of_a_pod(core: client.CoreV1Api, namespace: str):
    core.create_namespaced_pod(namespace, pod("p", scheduler="nobody"))
    # A node without a kubelet: nobody but this test changes the pod.
    target = client.V1ObjectReference(api_version="v1", kind="Node", name="elsewhere")
    binding = client.V1Binding(metadata=client.V1ObjectMeta(name="p"), target=target)
    core.create_namespaced_pod_binding("p", namespace, binding, _preload_content=False)
    with refused(409, "Conflict"):
        core.create_namespaced_pod_binding("p", namespace, binding, _preload_content=False)
    bound = core.list_namespaced_pod(namespace, field_selector="spec.nodeName=elsewhere").items
    assert [one.metadata.name for one in bound] == ["p"]

    now = datetime.datetime.now(datetime.UTC)
    condition = client.V1PodCondition(type="Ready", status="True", last_transition_time=now)
    status = client.V1Pod(status=client.V1PodStatus(phase="Running", conditions=[condition]))
    core.patch_namespaced_pod_status("p", namespace, status)
    read = core.read_namespaced_pod_status("p", namespace)
    assert read.status.phase == "Running"
    conditions = {one.type: one.status for one in read.status.conditions}
    assert conditions == {"PodScheduled": "True", "Ready": "True"}, "conditions merge by type"

    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="p"))
    core.create_namespaced_pod_eviction("p", namespace, eviction)
    assert core.read_namespaced_pod("p", namespace).metadata.deletion_timestamp is not None
    core.delete_namespaced_pod("p", namespace, grace_period_seconds=0)
    with refused(404, "NotFound"):
        core.read_namespaced_pod("p", namespace)


def test_a_collection_is_deleted_by_what_selects_it(core: client.CoreV1Api, namespace: str):
    for number in range(5):
        core.create_namespaced_config_map(namespace, config_map(f"c{number}", odd=str(number % 2)))
    core.delete_collection_namespaced_config_map(namespace, label_selector="odd=1")
    names = {one.metadata.name for one in core.list_namespaced_config_map(namespace).items}
    assert names == {"kube-root-ca.crt", "c0", "c2", "c4"}


def test_the_output_of_a_pod_is_read_and_followed(core: client.CoreV1Api, namespace: str, tmp_path: Path):
    go = tmp_path / "go"
    command = f"echo one; echo two; until [ -e {go} ]; do sleep 0.05; done; echo three"
    core.create_namespaced_pod(namespace, pod("talks", command))
    until(lambda: core.read_namespaced_pod("talks", namespace).status.phase == "Running")
    until(lambda: "two" in core.read_namespaced_pod_log("talks", namespace))
    assert core.read_namespaced_pod_log("talks", namespace, tail_lines=1) == "two\n"
    stamped = core.read_namespaced_pod_log("talks", namespace, timestamps=True, limit_bytes=20)
    assert stamped[:4].isdigit() and len(stamped) == 20
    lines: list[str] = []
    for line in watch.Watch().stream(core.read_namespaced_pod_log, name="talks", namespace=namespace):
        lines.append(line)
        if line == "two":
            go.touch()
    assert lines == ["one", "two", "three"]
    until(lambda: core.read_namespaced_pod("talks", namespace).status.phase == "Succeeded")
    with refused(400, "BadRequest"):
        core.read_namespaced_pod_log("talks", namespace, container="other")


def test_events_are_the_same_in_both_groups(connection: client.ApiClient, core: client.CoreV1Api, namespace: str):
    events = client.EventsV1Api(connection)
    involved = client.V1ObjectReference(kind="Pod", name="p", namespace=namespace)
    old = client.CoreV1Event(
        metadata=client.V1ObjectMeta(name="old"), involved_object=involved, reason="R", message="m", type="Normal"
    )
    core.create_namespaced_event(namespace, old)
    new = client.EventsV1Event(
        metadata=client.V1ObjectMeta(name="new"),
        event_time=datetime.datetime(2026, 1, 1, microsecond=1, tzinfo=datetime.UTC),
        regarding=involved,
        reason="S",
        note="n",
        type="Warning",
        action="A",
        reporting_controller="example.com/test",
        reporting_instance="t",
    )
    events.create_namespaced_event(namespace, new)
    # The client leaves out the fraction of a whole second; a real server refuses that too.
    whole = new.model_copy(update={"event_time": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)})
    with refused(400, "BadRequest"):
        events.create_namespaced_event(namespace, whole)
    read = {one.metadata.name: one for one in core.list_namespaced_event(namespace).items}
    assert read["new"].message == "n" and read["new"].involved_object.name == "p"
    assert read["new"].reporting_component == "example.com/test"
    # The typed model wants an eventTime, which an event of the old form has none of.
    listing = events.list_namespaced_event(namespace, field_selector="regarding.name=p", _preload_content=False)
    notes = {one["metadata"]["name"]: one.get("note") for one in yaml.safe_load(listing.data)["items"]}
    assert notes == {"old": "m", "new": "n"}
    assert events.read_namespaced_event("new", namespace).event_time.year == 2026


def test_who_may_do_what_is_answered(connection: client.ApiClient, namespace: str):
    review = client.V1SelfSubjectAccessReview(
        spec=client.V1SelfSubjectAccessReviewSpec(
            resource_attributes=client.V1ResourceAttributes(
                namespace=namespace, verb="create", group="batch.volcano.sh", resource="jobs"
            )
        )
    )
    assert client.AuthorizationV1Api(connection).create_self_subject_access_review(review).status.allowed
    rules = client.V1SelfSubjectRulesReview(spec=client.V1SelfSubjectRulesReviewSpec(namespace=namespace))
    assert client.AuthorizationV1Api(connection).create_self_subject_rules_review(rules).status.resource_rules
    who = client.AuthenticationV1Api(connection).create_self_subject_review(client.V1SelfSubjectReview())
    assert "system:masters" in who.status.user_info.groups


def test_leaders_are_elected_by_a_lease(connection: client.ApiClient, namespace: str):
    leases = client.CoordinationV1Api(connection)
    led: list[str] = []
    leading = threading.Event()
    hold = threading.Event()

    def elect(name: str) -> Callable[[], None]:
        def started() -> None:
            led.append(name)
            leading.set()
            hold.wait(120)
            raise InterruptedError("gives the office up")

        settings = electionconfig.Config(
            LeaseLock("office", namespace, name),
            lease_duration=30,
            renew_deadline=20,
            retry_period=1,
            onstarted_leading=started,
            onstopped_leading=lambda: None,
        )
        return leaderelection.LeaderElection(settings).run

    first = threading.Thread(target=elect("first"), daemon=True)
    first.start()
    assert leading.wait(60)
    lease = leases.read_namespaced_lease("office", namespace)
    assert lease.spec.holder_identity == "first"
    renewed = lease.spec.renew_time
    later = until(lambda: (r := leases.read_namespaced_lease("office", namespace).spec.renew_time) > renewed and r)
    assert later > renewed
    hold.set()
    first.join(60)
    assert not first.is_alive() and led == ["first"]


def test_an_informer_knows_what_the_server_does(core: client.CoreV1Api, namespace: str):
    core.create_namespaced_config_map(namespace, config_map("before", {"v": "1"}))
    informer = SharedInformer(core.list_namespaced_config_map, namespace=namespace)
    reported: list[tuple[str, str]] = []
    for kind in (ADDED, MODIFIED, DELETED):
        informer.add_event_handler(kind, lambda obj, kind=kind: reported.append((kind, obj.metadata.name)))
    informer.start()
    try:
        until(lambda: ("ADDED", "before") in reported)
        core.create_namespaced_config_map(namespace, config_map("after"))
        core.patch_namespaced_config_map("before", namespace, {"data": {"v": "2"}})
        core.delete_namespaced_config_map("after", namespace)
        until(lambda: ("DELETED", "after") in reported)
    finally:
        informer.stop()
    assert reported.count(("MODIFIED", "before")) == 1 and reported.count(("ADDED", "after")) == 1
    assert informer.cache.get_by_key(f"{namespace}/before").data == {"v": "2"}
    assert informer.cache.get_by_key(f"{namespace}/after") is None


def test_a_file_with_several_objects_is_created(connection: client.ApiClient, core: client.CoreV1Api, namespace: str):
    documents = [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"user": "me"}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "reads"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        },
    ]
    made = utils.create_from_yaml(connection, yaml_objects=documents, namespace=namespace)
    assert len(made) == len(documents)
    assert core.read_namespaced_secret("s", namespace).data == {"user": "bWU="}
    assert core.read_namespaced_service("web", namespace).spec.cluster_ip
    with pytest.raises(utils.FailToCreateError, match="already exists"):
        utils.create_from_yaml(connection, yaml_objects=documents[:1], namespace=namespace)


def test_a_namespace_goes_with_all_that_is_in_it(core: client.CoreV1Api, new_namespace: Callable[[], str]):
    name = new_namespace()
    assert core.read_namespace(name).status.phase == "Active"
    assert core.read_namespaced_service_account("default", name).metadata.uid
    held = config_map("held")
    held.metadata.finalizers = ["example.com/hold"]
    core.create_namespaced_config_map(name, held)
    core.create_namespaced_config_map(name, config_map("free"))
    core.delete_namespace(name)

    with refused(403, "Forbidden"):
        core.create_namespaced_config_map(name, config_map("late"))
    assert core.read_namespace(name).status.phase == "Terminating"
    until(lambda: [one.metadata.name for one in core.list_namespaced_config_map(name).items] == ["held"])
    core.patch_namespaced_config_map("held", name, {"metadata": {"finalizers": None}})

    def is_gone() -> bool:
        try:
            core.read_namespace(name)
        except ApiException as error:
            return error.status == 404
        return False

    until(is_gone)
    core.create_namespace({"metadata": {"name": name}})


def test_all_kinds_of_the_client_can_be_listed(connection: client.ApiClient, core: client.CoreV1Api):
    """The models check what they read: an answer that lacks a field which they require raises."""
    assert core.list_node().items[0].status.node_info.architecture
    assert core.list_namespace().items
    core.list_event_for_all_namespaces(_preload_content=False)
    core.list_pod_for_all_namespaces()
    assert client.VersionApi(connection).get_code().major == "1"
    assert client.ApisApi(connection).get_api_versions().groups
    assert client.CoreApi(connection).get_api_versions().versions == ["v1"]
    definitions = client.ApiextensionsV1Api(connection).list_custom_resource_definition().items
    assert "jobs.batch.volcano.sh" in {one.metadata.name for one in definitions}
    client.AppsV1Api(connection).list_deployment_for_all_namespaces()
    client.BatchV1Api(connection).list_job_for_all_namespaces()
    client.SchedulingV1Api(connection).list_priority_class()
    client.StorageV1Api(connection).list_storage_class()
    client.PolicyV1Api(connection).list_pod_disruption_budget_for_all_namespaces()
    client.RbacAuthorizationV1Api(connection).list_cluster_role()
    client.NetworkingV1Api(connection).list_network_policy_for_all_namespaces()
    client.AdmissionregistrationV1Api(connection).list_mutating_webhook_configuration()
    client.CoordinationV1Api(connection).list_lease_for_all_namespaces()
    client.DiscoveryV1Api(connection).list_endpoint_slice_for_all_namespaces()
    client.AutoscalingV2Api(connection).list_horizontal_pod_autoscaler_for_all_namespaces()
