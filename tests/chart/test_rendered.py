"""What the chart renders for a table of values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from tests.chart.helm import CHART, Rendered, render
from webhooks.configurations import MUTATING, NAMES, VALIDATING
from webhooks.policies import documents as policies

pytestmark = pytest.mark.usefixtures("helm")

PROGRAMS = ("vcbatch-controllers", "vcbatch-scheduler", "vcbatch-webhooks")
DIGEST = "sha256:" + "0123456789abcdef" * 4
V1BETA1 = "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy"
CERT_MANAGER = ("--api-versions", "cert-manager.io/v1")


def rendered(
    values: Mapping[str, Any] | None = None, *flags: str, namespace: str = "volcano-system", crds: bool = False
) -> Rendered:
    """What is made of values that are good."""
    made = render(values, *flags, namespace=namespace, crds=crds)
    assert not made.error, made.error
    return made


def pods(made: Rendered) -> dict[str, dict[str, Any]]:
    """The spec of every pod that comes of it, by name: of Deployments, of the test, and of the gang (`gang`) that the
    test submits."""
    found = {item["metadata"]["name"]: item["spec"]["template"]["spec"] for item in made.of("Deployment")}
    found["vcbatch-test"] = made.one("Pod", "vcbatch-test")["spec"]
    (task,) = yaml.safe_load(made.one("ConfigMap", "vcbatch-test")["data"]["job.json"])["spec"]["tasks"]
    found["gang"] = task["template"]["spec"]
    assert {"vcbatch-controllers", "vcbatch-scheduler"} <= found.keys()
    return found


def rights(made: Rendered, *roles: str) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for kind in ("ClusterRole", "Role")
        for item in made.of(kind)
        if item["metadata"]["name"] in roles
        for rule in item["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


# Defaults ------------------------------------------------------------------------------------------------------------


def test_two_replicas_of_each_program_of_which_one_leads() -> None:
    made = rendered()
    assert made.names("Deployment") == set(PROGRAMS)
    for program in PROGRAMS:
        spec = made.one("Deployment", program)["spec"]
        assert spec["replicas"] == 2
        assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
        budget = made.one("PodDisruptionBudget", program)["spec"]
        assert budget["maxUnavailable"] == 1
        assert budget["selector"] == spec["selector"]
        assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    for program in ("vcbatch-controllers", "vcbatch-scheduler"):
        assert "--leader-elect=true" in made.arguments(program)


def test_probes_ask_the_health_port() -> None:
    made = rendered()
    for program in PROGRAMS:
        container = made.container(program)
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        paths = {kind: container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")}
        assert paths == {"startup": "/livez", "liveness": "/livez", "readiness": "/readyz"}
        assert {container[f"{kind}Probe"]["httpGet"]["port"] for kind in paths} == {"health"}
        assert f"--healthz-address=:{ports['health']}" in container["args"]


def test_replicas_of_one_program_are_spread_and_those_of_others_do_not_count() -> None:
    for program in PROGRAMS:
        spec = rendered().one("Deployment", program)["spec"]
        constraints = spec["template"]["spec"]["topologySpreadConstraints"]
        # One more over zones would make kube-scheduler ignore both where nodes have no label for their zone.
        assert [each["topologyKey"] for each in constraints] == ["kubernetes.io/hostname"]
        assert all(each["labelSelector"] == spec["selector"] for each in constraints)


def test_no_object_is_a_hook_but_the_pod_of_the_test() -> None:
    made = rendered(crds=True)
    hooks = [
        (item["kind"], annotations["helm.sh/hook"])
        for item in made.objects
        if "helm.sh/hook" in (annotations := item["metadata"].get("annotations") or {})
    ]
    assert hooks == [("Pod", "test")]


def test_every_object_has_the_common_labels() -> None:
    made = rendered({"commonLabels": {"team": "batch"}}, crds=True)
    for item in made.objects:
        labels = item["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == "vcbatch", item["metadata"]
        assert labels["app.kubernetes.io/instance"] == "vcbatch"
        assert labels["team"] == "batch", item["metadata"]


# CRDs ----------------------------------------------------------------------------------------------------------------


def _crds() -> dict[str, Any]:
    texts = [path.read_text() for path in sorted((CHART / "files/crds").glob("*.yaml"))]
    return {item["metadata"]["name"]: item for item in map(yaml.safe_load, texts)}


def test_crds_are_those_of_the_project_and_kept() -> None:
    made = {item["metadata"]["name"]: item for item in rendered(crds=True).of("CustomResourceDefinition")}
    assert {name: item["spec"] for name, item in made.items()} == {name: item["spec"] for name, item in _crds().items()}
    assert {item["metadata"]["annotations"]["helm.sh/resource-policy"] for item in made.values()} == {"keep"}


def test_crds_go_with_the_release_where_that_is_asked_for() -> None:
    made = rendered({"crds": {"keep": False}}, crds=True)
    assert len(made.of("CustomResourceDefinition")) == len(_crds())
    assert all("annotations" not in item["metadata"] for item in made.of("CustomResourceDefinition"))


def test_crds_are_left_out_where_that_is_asked_for() -> None:
    assert not rendered({"crds": {"install": False}}).of("CustomResourceDefinition")


# Pods ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["webhooks", "policies", "none"])
def test_every_pod_conforms_to_the_pod_security_standard_restricted(mode: str) -> None:
    found = pods(rendered({"admission": {"mode": mode}}))
    for name, pod in found.items():
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod), name
        assert {next(iter(set(volume) - {"name"})) for volume in pod.get("volumes", ())} <= {
            "configMap", "emptyDir", "secret"
        }, name  # fmt: skip
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False, name
            assert context["capabilities"] == {"drop": ["ALL"]}, name
            assert context["readOnlyRootFilesystem"] is True, name
            assert "hostPort" not in str(container.get("ports")), name


def test_a_program_writes_to_tmp_alone() -> None:
    for program in PROGRAMS:
        mounts = rendered().container(program)["volumeMounts"]
        assert [mount["mountPath"] for mount in mounts if not mount.get("readOnly")] == ["/tmp"]


def test_no_user_is_named_where_the_platform_chooses_it() -> None:
    for name, pod in pods(rendered({"podSecurityContext": {"runAsUser": None, "runAsGroup": None}})).items():
        assert not {"runAsUser", "runAsGroup"} & set(pod["securityContext"]), name


@pytest.mark.parametrize(
    ("values", "image"),
    [
        ({}, "vcbatch:0.1.0"),
        ({"image": {"tag": "1.2.3"}}, "vcbatch:1.2.3"),
        ({"image": {"digest": DIGEST, "tag": "1.2.3"}}, f"vcbatch@{DIGEST}"),
        ({"image": {"registry": "r.example:5000", "repository": "ml/vcbatch"}}, "r.example:5000/ml/vcbatch:0.1.0"),
        ({"image": {"registry": "a"}, "global": {"imageRegistry": "m.example/c"}}, "m.example/c/vcbatch:0.1.0"),
    ],
)  # fmt: skip
def test_images(values: dict[str, Any], image: str) -> None:
    for name, pod in pods(rendered(values)).items():
        assert [container["image"] for container in pod["containers"]] == [image], name


def test_the_gang_of_the_test_may_have_another_image() -> None:
    values = {
        "tests": {"image": {"registry": "r.example", "repository": "busybox", "digest": DIGEST}, "command": ["true"]}
    }
    found = pods(rendered(values))
    (member,) = found["gang"]["containers"]
    assert (member["image"], member["command"]) == (f"r.example/busybox@{DIGEST}", ["true"])
    assert found["vcbatch-test"]["containers"][0]["image"] == "vcbatch:0.1.0"


def test_pull_secrets_of_both_places_reach_every_pod_once() -> None:
    values = {"global": {"imagePullSecrets": ["a", {"name": "b"}]}, "image": {"pullSecrets": ["b", "c"]}}
    for name, pod in pods(rendered(values)).items():
        assert pod["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}, {"name": "c"}], name


EXTRAS: dict[str, Any] = {
    "extraArgs": ["--log-level=debug"],
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy.example"}],
    "extraVolumes": [{"name": "more", "configMap": {"name": "more"}}],
    "extraVolumeMounts": [{"name": "more", "mountPath": "/more", "readOnly": True}],
    "podLabels": {"l": "1"},
    "podAnnotations": {"a": "2"},
    "nodeSelector": {"role": "system"},
    "tolerations": [{"key": "system", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClassName": "high",
    "terminationGracePeriodSeconds": 77,
    "resources": {"requests": {"cpu": 3}},
    "replicas": 3,
    "logLevel": "warning",
    "topologySpreadConstraints": [{"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}],
}


@pytest.mark.parametrize("program", ["controllers", "scheduler", "webhooks"])
def test_extras_of_a_program_reach_it_and_no_other(program: str) -> None:
    made = rendered({program: EXTRAS})
    for name in PROGRAMS:
        deployment = made.one("Deployment", name)["spec"]
        pod, container = deployment["template"]["spec"], made.container(name)
        mine = name == f"vcbatch-{program}"
        assert (container["args"][-1] == "--log-level=debug") is mine
        assert ("--log-level=warning" in container["args"]) is mine
        assert (container.get("env") == EXTRAS["extraEnv"]) is mine
        assert (EXTRAS["extraVolumes"][0] in pod["volumes"]) is mine
        assert (EXTRAS["extraVolumeMounts"][0] in container["volumeMounts"]) is mine
        assert (deployment["template"]["metadata"]["labels"].get("l") == "1") is mine
        assert (deployment["template"]["metadata"]["annotations"].get("a") == "2") is mine
        for field in ("nodeSelector", "tolerations", "affinity", "priorityClassName", "terminationGracePeriodSeconds"):
            assert (pod.get(field) == EXTRAS[field]) is mine, field
        assert (container["resources"]["requests"]["cpu"] == 3) is mine
        assert (deployment["replicas"] == 3) is mine
        assert (pod["topologySpreadConstraints"][0]["topologyKey"] == "rack") is mine


def test_what_all_pods_have_in_common() -> None:
    common = {key: EXTRAS[key] for key in ("podLabels", "podAnnotations", "nodeSelector", "tolerations", "affinity")}
    made = rendered({**common, "priorityClassName": ""})
    for program in PROGRAMS:
        template = made.one("Deployment", program)["spec"]["template"]
        assert template["metadata"]["labels"]["l"] == "1"
        assert template["metadata"]["annotations"]["a"] == "2"
        assert "priorityClassName" not in template["spec"]
    for pod in pods(made).values():
        assert pod["nodeSelector"] == common["nodeSelector"]
        assert pod["tolerations"] == common["tolerations"]


def test_one_replica_has_no_disruption_budget() -> None:
    made = rendered({"controllers": {"replicas": 1}, "webhooks": {"podDisruptionBudget": {"enabled": False}}})
    assert made.names("PodDisruptionBudget") == {"vcbatch-scheduler"}


# Namespace -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values", [{}, {"admission": {"mode": "policies"}}, {"admission": {"certificates": "cert-manager"}}]
)
def test_everything_is_in_the_namespace_of_the_release(values: dict[str, Any]) -> None:
    made = rendered(values, *CERT_MANAGER, namespace="batch")
    assert "volcano-system" not in made.text
    namespaces = {item["metadata"]["namespace"] for item in made.objects if "namespace" in item["metadata"]}
    assert namespaces == {"batch"}
    subjects = [
        subject
        for kind in ("ClusterRoleBinding", "RoleBinding")
        for item in made.of(kind)
        for subject in item["subjects"]
        if subject["kind"] == "ServiceAccount"
    ]
    assert {subject["namespace"] for subject in subjects} == {"batch"}
    for program in ("vcbatch-controllers", "vcbatch-scheduler"):
        assert "--leader-elect-resource-namespace=batch" in made.arguments(program)
    if made.of("Deployment", "vcbatch-webhooks"):
        assert "--webhook-namespace=batch" in made.arguments("vcbatch-webhooks")


# Schedulers ----------------------------------------------------------------------------------------------------------

POLICY = 'actions: "enqueue, allocate, preempt"\ntiers:\n- plugins:\n  - name: gang\n'
TWO = {
    "schedulers": [
        {"name": "volcano"},
        {
            "name": "research", "policy": POLICY, "replicas": 1, "schedulePeriod": "500ms", "defaultQueue": "lab",
            "nodes": ["pool:research"], "sharding": {"mode": "soft"}, "extraArgs": ["--log-level=debug"],
        },
    ]
}  # fmt: skip


def test_several_schedulers_have_each_a_lease_a_policy_and_settings_of_their_own() -> None:
    made = rendered(TWO)
    assert {"vcbatch-scheduler", "vcbatch-scheduler-research"} < made.names("Deployment")
    first, second = made.arguments("vcbatch-scheduler"), made.arguments("vcbatch-scheduler-research")
    assert {"--scheduler-name=volcano", "--leader-elect-resource-name=vcbatch-scheduler"} <= set(first)
    assert not any(argument.startswith("--scheduler-conf") for argument in first)
    assert {
        "--scheduler-name=research", "--leader-elect-resource-name=vcbatch-scheduler-research",
        "--schedule-period=500ms", "--default-queue=lab", "--node-selector=pool:research",
        "--scheduler-sharding-mode=soft", "--scheduler-sharding-name=research", "--log-level=debug",
        "--scheduler-conf=/etc/vcbatch/policy/volcano-scheduler.conf",
    } <= set(second)  # fmt: skip
    assert made.one("ConfigMap", "vcbatch-scheduler-research")["data"] == {"volcano-scheduler.conf": POLICY}
    mounted = made.one("Deployment", "vcbatch-scheduler-research")["spec"]["template"]["spec"]["volumes"]
    assert {"name": "policy", "configMap": {"name": "vcbatch-scheduler-research"}} in mounted
    assert "vcbatch-scheduler-research" not in made.names("PodDisruptionBudget")
    for kind, role in (("Role", "vcbatch-scheduler"), ("Role", "vcbatch-policy-readers")):
        named = [rule["resourceNames"] for rule in made.one(kind, role)["rules"] if "resourceNames" in rule]
        assert named == [["vcbatch-scheduler", "vcbatch-scheduler-research"]]


def test_several_schedulers_do_not_select_each_others_pods() -> None:
    made = rendered(TWO)
    selectors = {item["metadata"]["name"]: item["spec"]["selector"]["matchLabels"] for item in made.of("Deployment")}
    assert {"vcbatch-scheduler", "vcbatch-scheduler-research"} <= selectors.keys()
    for item in made.of("Deployment"):
        labels = item["spec"]["template"]["metadata"]["labels"]
        matching = {name for name, selector in selectors.items() if selector.items() <= labels.items()}
        assert matching == {item["metadata"]["name"]}


def test_controllers_and_webhooks_know_all_schedulers() -> None:
    made = rendered(TWO)
    for program in ("vcbatch-controllers", "vcbatch-webhooks"):
        assert {"--scheduler-name=volcano", "--scheduler-name=research"} <= set(made.arguments(program))


def test_a_policy_may_be_a_mapping_or_a_config_map_of_somebody_else() -> None:
    policy = {"actions": "allocate", "tiers": [{"plugins": [{"name": "gang"}]}]}
    made = rendered({"schedulers": [{"name": "volcano", "policy": policy}]})
    data = made.one("ConfigMap", "vcbatch-scheduler")["data"]["volcano-scheduler.conf"]
    assert yaml.safe_load(data) == policy
    other = rendered({"schedulers": [{"name": "volcano", "policyConfigMap": {"name": "mine", "key": "conf"}}]})
    assert not other.of("ConfigMap", "vcbatch-scheduler")
    volumes = other.one("Deployment", "vcbatch-scheduler")["spec"]["template"]["spec"]["volumes"]
    items = [{"key": "conf", "path": "volcano-scheduler.conf"}]
    assert {"name": "policy", "configMap": {"name": "mine", "items": items}} in volumes


def _template(made: Rendered) -> Any:
    return made.one("Deployment", "vcbatch-scheduler")["spec"]["template"]


def test_a_changed_policy_restarts_a_scheduler_only_where_that_is_asked_for() -> None:
    texts = [{"schedulers": [{"name": "volcano", "policy": POLICY + comment}]} for comment in ("", "# changed\n")]
    followed = [_template(rendered(values)) for values in texts]
    restarted = [_template(rendered({**values, "restartOnConfigurationChange": True})) for values in texts]
    assert followed[0] == followed[1]
    assert restarted[0] != restarted[1]


def test_configurations_of_controllers_and_webhooks() -> None:
    discovery = {"networkTopologyDiscovery": []}
    groups = {"resourceGroups": [{"resourceGroup": "gpu"}]}
    values: dict[str, Any] = {
        "controllers": {"discovery": discovery, "sharding": "schedulerConfigs: []\n"},
        "admission": {"resourceGroups": groups},
    }
    made = rendered(values)
    controllers, webhooks = "vcbatch-controllers", "vcbatch-webhooks"
    for config, key, program, flag, wanted in (
        (controllers, "volcano-controller.conf", controllers, "--controller-conf", discovery),
        ("vcbatch-sharding", "sharding.yaml", controllers, "--sharding-conf", {"schedulerConfigs": []}),
        ("vcbatch-admission", "volcano-admission.conf", webhooks, "--admission-conf", groups),
    ):
        assert yaml.safe_load(made.one("ConfigMap", config)["data"][key]) == wanted
        (argument,) = [each for each in made.arguments(program) if each.startswith(f"{flag}=")]
        folder, _, file = argument.partition("=")[2].rpartition("/")
        assert file == key
        (mount,) = [each for each in made.container(program)["volumeMounts"] if each["mountPath"] == folder]
        volumes = made.one("Deployment", program)["spec"]["template"]["spec"]["volumes"]
        assert {"name": mount["name"], "configMap": {"name": config}} in volumes


def test_feature_gates_reach_scheduler_and_webhooks() -> None:
    made = rendered({"featureGates": {"SchedulingGatesQueueAdmission": True}})
    for program in ("vcbatch-scheduler", "vcbatch-webhooks"):
        assert "--feature-gates=SchedulingGatesQueueAdmission=true" in made.arguments(program)


# Rights --------------------------------------------------------------------------------------------------------------

EVICTS = ("", "pods", "delete")
UNGATES = ("", "pods", "patch")
LOCKS = ("", "nodes", "patch")
MEASURES = ("metrics.k8s.io", "nodes", "list")
SHARDS = ("shard.volcano.sh", "nodeshards/status", "patch")


def _policy(text: str) -> dict[str, Any]:
    return {"schedulers": [{"name": "volcano", "policy": text}]}


@pytest.mark.parametrize(
    ("values", "granted"),
    [
        ({}, set()),
        (_policy("actions: allocate\n"), set()),
        (_policy(POLICY), {EVICTS}),
        (_policy('actions: "allocate, shuffle"\n'), {EVICTS}),
        (_policy("actions: allocate\nmetrics: {type: prometheus}\n"), {MEASURES}),
        (_policy("actions: allocate\ntiers: [{plugins: [{name: deviceshare}]}]\n"), {LOCKS}),
        ({"schedulers": [{"name": "volcano", "policyConfigMap": {"name": "x"}}]}, {EVICTS, LOCKS, MEASURES}),
        ({"scheduler": {"extraArgs": ["--plugin=/p.py"]}}, {EVICTS, LOCKS, MEASURES}),
        ({"featureGates": {"SchedulingGatesQueueAdmission": True}}, {UNGATES}),
        ({"schedulers": [{"name": "volcano", "sharding": {"mode": "hard"}}]}, {SHARDS}),
        ({"controllers": {"sharding": "schedulerConfigs: []"}}, {SHARDS}),
    ],
    ids=lambda value: str(sorted(value) if isinstance(value, set) else value)[:60],
)
def test_the_scheduler_has_the_rights_of_features_that_are_on(
    values: dict[str, Any], granted: set[tuple[str, str, str]]
) -> None:
    found = rights(rendered(values), "vcbatch-scheduler")
    assert found & {EVICTS, UNGATES, LOCKS, MEASURES, SHARDS} == granted
    assert {("", "pods", "watch"), ("", "nodes", "watch"), ("shard.volcano.sh", "nodeshards", "watch")} <= found


def test_the_controllers_have_the_rights_of_features_that_are_on() -> None:
    makes = ("topology.volcano.sh", "hypernodes", "create")
    shards = ("shard.volcano.sh", "nodeshards", "create")
    assert not rights(rendered(), "vcbatch-controllers") & {makes, shards}
    assert makes in rights(rendered({"controllers": {"discovery": "a: 1"}}), "vcbatch-controllers")
    assert shards in rights(rendered({"controllers": {"sharding": "a: 1"}}), "vcbatch-controllers")


def test_nothing_is_granted_beyond_the_manifests_of_installation_by_hand() -> None:
    full = {
        **_policy(POLICY + "metrics: {}\n# deviceshare\n"),
        "controllers": {"discovery": "a: 1", "sharding": "a: 1"},
        "featureGates": {"SchedulingGatesQueueAdmission": True},
    }
    made = rendered(full)
    for part in ("controllers", "scheduler", "webhooks"):
        documents = [each for each in yaml.safe_load_all((CHART / f"files/rbac/{part}.yaml").read_text()) if each]
        for document in documents:
            if document["kind"] in ("ClusterRole", "Role"):
                role = made.one(document["kind"], document["metadata"]["name"])
                unused = {"resourceNames": ["volcano-scheduler-configmap"]}  # it is mounted
                wanted = [rule for rule in document["rules"] if not unused.items() <= rule.items()]
                assert role["rules"] == wanted


def test_only_programs_whose_feature_is_on_have_further_roles() -> None:
    base = {"vcbatch-queue-access", "vcbatch-submit"}
    assert not base & rendered().names("ClusterRole")
    made = rendered({"admission": {"checkQueueAccess": True, "countPlacedPods": True}})
    assert base <= made.names("ClusterRole")
    assert {"--check-queue-access", "--enable-queue-allocated-pods-check"} <= set(made.arguments("vcbatch-webhooks"))


def test_ssh_is_allowed_in_the_named_namespaces_only() -> None:
    assert not [item for item in rendered().of("RoleBinding") if item["roleRef"]["name"] == "vcbatch-ssh"]
    made = rendered({"rbac": {"sshNamespaces": ["a", "b"]}}, namespace="batch")
    bindings = [item for item in made.of("RoleBinding") if item["roleRef"]["name"] == "vcbatch-ssh"]
    assert [item["metadata"]["namespace"] for item in bindings] == ["a", "b"]
    assert {item["subjects"][0]["namespace"] for item in bindings} == {"batch"}


def test_tokens_are_mounted_by_the_pods_that_need_them() -> None:
    made = rendered()
    assert {item["automountServiceAccountToken"] for item in made.of("ServiceAccount")} == {False}
    mounted = {name for name, pod in pods(made).items() if pod["automountServiceAccountToken"]}
    assert mounted == {*PROGRAMS, "vcbatch-test"}


def test_users_may_make_commands_only_where_somebody_judges_them() -> None:
    command = ("bus.volcano.sh", "commands", "create")
    assert command in rights(rendered(), "vcbatch-edit")
    assert command not in rights(rendered({"admission": {"mode": "policies"}}), "vcbatch-edit")
    roles = {"vcbatch-edit", "vcbatch-view", "vcbatch-queue-viewer"}
    assert roles <= rendered().names("ClusterRole")
    assert not roles & rendered({"rbac": {"userRoles": False}}).names("ClusterRole")
    assert "vcbatch-policy-readers" not in rendered({"rbac": {"policyReaders": False}}).names("Role")


# Admission -----------------------------------------------------------------------------------------------------------


SECRETS = ("", "secrets", "update")
CERTIFICATES: list[Any] = [
    pytest.param({"certificates": "self"}, (), "", id="self"),
    pytest.param({"certificates": "cert-manager"}, CERT_MANAGER, "vcbatch-webhooks-tls", id="cert-manager"),
    pytest.param({"certificates": "secret", "secretName": "mine"}, (), "mine", id="secret"),
]


@pytest.mark.parametrize(("values", "flags", "secret"), CERTIFICATES)
def test_the_service_writes_the_rules_into_configurations_that_go_with_the_release(
    values: dict[str, Any], flags: tuple[str, ...], secret: str
) -> None:
    made = rendered({"admission": values}, *flags, namespace="batch")
    for resource in (MUTATING, VALIDATING):
        assert made.names(resource.kind) == set(NAMES[resource])
        assert all("webhooks" not in item for item in made.of(resource.kind))
    assert {
        "--manage-configurations", "--listen-address=", "--webhook-service-name=volcano-admission-service",
        "--webhook-namespace=batch", "--controllers-account=batch/vcbatch-controllers",
    } <= set(made.arguments("vcbatch-webhooks"))  # fmt: skip
    granted = rights(made, "vcbatch-webhooks")
    verbs = {verb for _, resource, verb in granted if "webhookconfigurations" in resource}
    assert verbs == {"list", "watch", "patch"}, "what is deleted with the release must not come back"
    assert (SECRETS in granted) is (not secret)
    assert made.names("Secret") == (set() if secret else {"volcano-admission-secret"})
    files = {
        "--tls-cert-file=/etc/vcbatch/tls/tls.crt", "--tls-private-key-file=/etc/vcbatch/tls/tls.key",
        "--ca-cert-file=/etc/vcbatch/tls/ca.crt",
    }  # fmt: skip
    assert files & set(made.arguments("vcbatch-webhooks")) == (files if secret else set())
    volumes = made.one("Deployment", "vcbatch-webhooks")["spec"]["template"]["spec"]["volumes"]
    assert ({"name": "tls", "secret": {"secretName": secret}} in volumes) is bool(secret)


def test_the_service_of_the_webhooks_selects_them() -> None:
    made = rendered({"webhooks": {"port": 10250}})
    service = made.one("Service", "volcano-admission-service")["spec"]
    labels = made.one("Deployment", "vcbatch-webhooks")["spec"]["template"]["metadata"]["labels"]
    assert service["selector"].items() <= labels.items()
    (port,) = service["ports"]
    ports = {each["name"]: each["containerPort"] for each in made.container("vcbatch-webhooks")["ports"]}
    assert (port["port"], ports[port["targetPort"]]) == (443, 10250)
    assert "--port=10250" in made.arguments("vcbatch-webhooks")


def test_cert_manager_issues_by_an_authority_of_the_chart_or_by_an_issuer_that_is_there() -> None:
    made = rendered({"admission": {"certificates": "cert-manager"}}, *CERT_MANAGER, namespace="batch")
    certificate = made.one("Certificate", "vcbatch-webhooks")["spec"]
    assert certificate["dnsNames"] == ["volcano-admission-service.batch.svc"]
    assert certificate["issuerRef"] == {"name": "vcbatch-webhooks", "kind": "Issuer", "group": "cert-manager.io"}
    authority = made.one("Certificate", "vcbatch-authority")["spec"]
    assert authority["isCA"] is True
    assert made.one("Issuer", "vcbatch-webhooks")["spec"] == {"ca": {"secretName": authority["secretName"]}}
    assert made.one("Issuer", authority["issuerRef"]["name"])["spec"] == {"selfSigned": {}}
    issuer = {"name": "corp", "kind": "ClusterIssuer"}
    values = {"certificates": "cert-manager", "certManager": {"issuerRef": issuer, "duration": "720h"}}
    other = rendered({"admission": values}, *CERT_MANAGER)
    assert not other.of("Issuer")
    spec = other.one("Certificate", "vcbatch-webhooks")["spec"]
    assert spec["issuerRef"] == {**issuer, "group": "cert-manager.io"}
    assert spec["duration"] == "720h"


@pytest.mark.parametrize(
    ("flags", "version"),
    [
        ((), "v1"),
        (("--kube-version", "1.35.0", "--api-versions", V1BETA1), "v1beta1"),
        (("--kube-version", "1.37.2"), "v1"),
    ],
    ids=["1.36", "1.35", "1.37"],
)
def test_admission_by_policies_needs_no_service(flags: tuple[str, ...], version: str) -> None:
    made = rendered({"admission": {"mode": "policies"}, **TWO}, *flags)
    account = "volcano-system/vcbatch-controllers"
    assert not made.of("Service", "volcano-admission-service")
    assert not made.of(MUTATING.kind) + made.of(VALIDATING.kind)
    assert {"vcbatch-webhooks"}.isdisjoint(made.names("Deployment") | made.names("ServiceAccount"))
    assert "vcbatch-webhooks" not in made.names("ClusterRole") | made.names("NetworkPolicy")
    wanted = [
        document
        for text in policies(["volcano", "research"], mutating_version=version, controllers=account).values()
        for document in yaml.safe_load_all(text)
        if document
    ]
    found = {(item["kind"], item["metadata"]["name"]): item for item in made.objects}
    for document in wanted:
        item = found[document["kind"], document["metadata"]["name"]]
        assert (item["apiVersion"], item["spec"]) == (document["apiVersion"], document["spec"])


def test_no_admission_at_all() -> None:
    made = rendered({"admission": {"mode": "none"}})
    assert made.names("Deployment") == {"vcbatch-controllers", "vcbatch-scheduler"}
    assert not [item for item in made.objects if "admissionregistration" in item["apiVersion"]]


@pytest.mark.parametrize(
    ("service", "wanted"),
    [
        ({}, (None, None)),
        ({"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv6"]}, ("SingleStack", ["IPv6"])),
        ({"ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv6", "IPv4"]}, ("PreferDualStack", ["IPv6", "IPv4"])),
    ],
    ids=["default", "IPv6", "dual stack"],
)
def test_ip_families(service: dict[str, Any], wanted: tuple[Any, Any]) -> None:
    made = rendered({"webhooks": {"service": service}})
    spec = made.one("Service", "volcano-admission-service")["spec"]
    assert (spec.get("ipFamilyPolicy"), spec.get("ipFamilies")) == wanted
    # Addresses without a host are those of both families.
    for program in PROGRAMS:
        hosts = [each for each in made.arguments(program) if "address=" in each]
        assert hosts and all(each.partition("=")[2].startswith(":") or each.endswith("=") for each in hosts)


# Network -------------------------------------------------------------------------------------------------------------


def test_each_program_has_a_network_policy_that_selects_it_alone() -> None:
    made = rendered(TWO)
    assert made.names("NetworkPolicy") == set(PROGRAMS)
    for item in made.of("NetworkPolicy"):
        selector = item["spec"]["podSelector"]["matchLabels"]
        selected = {
            deployment["spec"]["template"]["spec"]["serviceAccountName"]
            for deployment in made.of("Deployment")
            if selector.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
        }
        assert selected == {item["metadata"]["name"]}
        assert item["spec"]["policyTypes"] == ["Ingress", "Egress"]


def test_network_policies_let_in_what_serves_and_out_to_the_api_server() -> None:
    made = rendered()
    ports = {
        item["metadata"]["name"]: {port["port"] for rule in item["spec"]["ingress"] for port in rule["ports"]}
        for item in made.of("NetworkPolicy")
    }
    assert ports == {"vcbatch-controllers": {8080}, "vcbatch-scheduler": {8080}, "vcbatch-webhooks": {8443, 11251}}
    for program in PROGRAMS:
        item = made.one("NetworkPolicy", program)
        (egress,) = item["spec"]["egress"]
        assert {port["port"] for port in egress["ports"]} == {443, 6443, 8443, 16443}


def test_network_policies_are_narrowed_and_widened_by_values() -> None:
    block = {"ipBlock": {"cidr": "10.0.0.0/8"}}
    rule = {"ports": [{"port": 4317}], "to": [block]}
    values = {"apiServerPorts": [6443], "apiServers": [block], "metricsFrom": [block], "webhooksFrom": [block],
              "dns": True, "extraEgress": [rule]}  # fmt: skip
    made = rendered({"networkPolicy": values})
    for program in PROGRAMS:
        item = made.one("NetworkPolicy", program)
        assert all(each["from"] == [block] for each in item["spec"]["ingress"])
        api, dns, extra = item["spec"]["egress"]
        assert (api["to"], [port["port"] for port in api["ports"]]) == ([block], [6443])
        assert {port["protocol"] for port in dns["ports"]} == {"UDP", "TCP"}
        assert extra == rule
    assert not rendered({"networkPolicy": {"enabled": False}}).of("NetworkPolicy")


# The test ------------------------------------------------------------------------------------------------------------


def test_the_test_runs_its_gang_where_it_is_told_to() -> None:
    values = {"tests": {"namespace": "elsewhere", "pods": 2, "timeout": "1m30s", "queue": "lab"}}
    made = rendered({**values, "schedulers": [{"name": "mine"}]})
    for kind in ("ServiceAccount", "Role", "RoleBinding", "ConfigMap", "Pod"):
        assert made.one(kind, "vcbatch-test")["metadata"]["namespace"] == "elsewhere"
    job = yaml.safe_load(made.one("ConfigMap", "vcbatch-test")["data"]["job.json"])
    assert (job["spec"]["minAvailable"], job["spec"]["tasks"][0]["replicas"], job["spec"]["queue"]) == (2, 2, "lab")
    assert job["spec"]["schedulerName"] == "mine"
    pod = made.one("Pod", "vcbatch-test")["spec"]
    assert pod["containers"][0]["command"][-1] == "90"
    assert pod["activeDeadlineSeconds"] == 150


def test_the_test_is_left_out_where_that_is_asked_for() -> None:
    made = rendered({"tests": {"enabled": False}})
    assert not [item for item in made.objects if item["metadata"]["name"] == "vcbatch-test"]
