"""What is refused in a new pod, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.apiserver.core.servers import server, virtual
from tests.unit.apiserver.kinds.support import PODS, causes, container, pod
from vcbatch.api import name_rules

LABEL = name_rules.dns_label("A")[0]
VALUE = name_rules.label_value("x y")[0]
C0 = "spec.containers[0]"
TERMS = "requiredDuringSchedulingIgnoredDuringExecution"


def with_container(**more: Any) -> dict[str, Any]:
    return {"containers": [container(**more)]}


def with_env(**variable: Any) -> dict[str, Any]:
    return with_container(env=[variable])


def with_affinity(**affinity: Any) -> dict[str, Any]:
    return {"affinity": affinity}


FAULTY: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no containers": ({"containers": []}, ["spec.containers: Required value"]),
    "nothing of a container": (
        {"containers": [{}]},
        [f"{C0}.name: Required value", f"{C0}.image: Required value"],
    ),
    "padded image": (
        with_container(image=" x "),
        [f'{C0}.image: Invalid value: " x ": must not have leading or trailing whitespace'],
    ),
    "container's name": (with_container(name="A"), [f'{C0}.name: Invalid value: "A": {LABEL}']),
    "twice one name": (
        {"containers": [container(), container()]},
        ['spec.containers[1].name: Duplicate value: "c"'],
    ),
    "an init container's name": (
        {"initContainers": [container()]},
        ['spec.initContainers[0].name: Duplicate value: "c"'],
    ),
    "probes of an init container": (
        {"initContainers": [container(name="i", livenessProbe={"exec": {"command": ["x"]}})]},
        [
            (
                "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without "
                "restartPolicy=Always"
            )
        ],
    ),
    "restart policy": (
        {"restartPolicy": "Maybe"},
        ['spec.restartPolicy: Unsupported value: "Maybe": supported values: "Always", "OnFailure", "Never"'],
    ),
    "pull policy": (
        with_container(imagePullPolicy="Maybe"),
        [f'{C0}.imagePullPolicy: Unsupported value: "Maybe": supported values: "Always", "IfNotPresent", "Never"'],
    ),
    "port out of range": (
        with_container(ports=[{"containerPort": 65536, "hostPort": 70000}]),
        [
            f"{C0}.ports[0].containerPort: Invalid value: 65536: must be between 1 and 65535, inclusive",
            f"{C0}.ports[0].hostPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
        ],
    ),
    "port without a number": (
        with_container(ports=[{"name": "http"}]),
        [f"{C0}.ports[0].containerPort: Required value"],
    ),
    "port's name": (
        with_container(ports=[{"name": "-Long-port-name--here", "containerPort": 1}]),
        [
            f'{C0}.ports[0].name: Invalid value: "-Long-port-name--here": {text}'
            for text in (
                "must be no more than 15 characters",
                "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                "must not contain consecutive hyphens",
                "must not begin or end with a hyphen",
            )
        ],
    ),
    "protocol": (
        with_container(ports=[{"containerPort": 1, "protocol": "ICMP"}]),
        [f'{C0}.ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"'],
    ),
    "two containers on one host port": (
        {"containers": [container(ports=[{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}])]},
        [f'{C0}.ports[1].hostPort: Duplicate value: "TCP//9"'],
    ),
    "variable without a name": (with_env(value="x"), [f"{C0}.env[0].name: Required value"]),
    "variable's name": (
        with_env(name="A=B"),
        [
            (
                f'{C0}.env[0].name: Invalid value: "A=B": a valid environment variable name must consist only of '
                "printable ASCII characters other than '='"
            )
        ],
    ),
    "two sources of a variable": (
        with_env(
            name="A",
            valueFrom={"fieldRef": {"fieldPath": "metadata.name"}, "secretKeyRef": {"name": "s", "key": "k"}},
        ),
        [f'{C0}.env[0].valueFrom: Invalid value: "": may not have more than one field specified at a time'],
    ),
    "unusable field": (
        with_env(name="A", valueFrom={"fieldRef": {"fieldPath": "metadata.labels"}}),
        [
            (
                f'{C0}.env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "metadata.labels": supported values: '
                '"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", '
                '"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"'
            )
        ],
    ),
    "unusable resource": (
        with_env(name="A", valueFrom={"resourceFieldRef": {"resource": "limits.gpu"}}),
        [
            (
                f'{C0}.env[0].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.gpu": supported values: '
                '"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", '
                '"requests.ephemeral-storage", "requests.memory"'
            )
        ],
    ),
    "key of a secret": (
        with_env(name="A", valueFrom={"secretKeyRef": {"name": "s"}}),
        [f"{C0}.env[0].valueFrom.secretKeyRef.key: Required value"],
    ),
    "source of variables": (
        with_container(envFrom=[{}]),
        [f'{C0}.envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`'],
    ),
    "more requested than allowed": (
        with_container(resources={"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}),
        [f'{C0}.resources.requests: Invalid value: "2Gi": must be less than or equal to memory limit of 1Gi'],
    ),
    "less than nothing": (
        with_container(resources={"limits": {"cpu": "-1"}}),
        [
            f'{C0}.resources.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
            f'{C0}.resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        ],
    ),
    "half a device": (
        with_container(resources={"limits": {"nvidia.com/gpu": "500m"}}),
        [
            f'{C0}.resources.limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer',
            f'{C0}.resources.requests[nvidia.com/gpu]: Invalid value: "500m": must be an integer',
        ],
    ),
    "devices without a limit": (
        with_container(resources={"requests": {"nvidia.com/gpu": "1"}}),
        [f"{C0}.resources.limits: Required value: Limit must be set for non overcommitable resources"],
    ),
    "fewer devices than the limit": (
        with_container(resources={"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}}),
        [f'{C0}.resources.requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2'],
    ),
    "unknown resource": (
        with_container(resources={"requests": {"gpu": "1"}}),
        [
            f'{C0}.resources.requests[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified',
            f'{C0}.resources.requests[gpu]: Invalid value: "gpu": must be a standard resource for containers',
        ],
    ),
    "unknown volume": (
        with_container(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
        [f'{C0}.volumeMounts[0].name: Not found: "v"'],
    ),
    "volume of two kinds": (
        {"volumes": [{"name": "v", "emptyDir": {}, "secret": {"secretName": "s"}}]},
        ["spec.volumes[0].secret: Forbidden: may not specify more than 1 volume type"],
    ),
    "volumes of one name": (
        {"volumes": [{"name": "v"}, {"name": "v"}]},
        ['spec.volumes[1].name: Duplicate value: "v"'],
    ),
    "path out of a volume": (
        {"volumes": [{"name": "v", "configMap": {"name": "m", "items": [{"key": "k", "path": "../k"}]}}]},
        ["spec.volumes[0].configMap.items[0].path: Invalid value: \"../k\": must not contain '..'"],
    ),
    "mode of files": (
        {"volumes": [{"name": "v", "secret": {"secretName": "s", "defaultMode": 512}}]},
        [
            (
                "spec.volumes[0].secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), "
                "both inclusive"
            )
        ],
    ),
    "nothing but a claim's name is needed": (
        {"volumes": [{"name": "v", "persistentVolumeClaim": {}}]},
        ["spec.volumes[0].persistentVolumeClaim.claimName: Required value"],
    ),
    "one file from two sources": (
        {
            "volumes": [
                {
                    "name": "v",
                    "projected": {
                        "sources": [
                            {"configMap": {"name": "a", "items": [{"key": "k", "path": "f"}]}},
                            {"configMap": {"name": "b", "items": [{"key": "k", "path": "f"}]}},
                        ]
                    },
                }
            ]
        },
        ['spec.volumes[0].projected: Invalid value: "b": conflicting duplicate paths'],
    ),
    "two mounts at one path": (
        {
            "volumes": [{"name": "v"}],
            "containers": [
                container(volumeMounts=[{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/v"}])
            ],
        },
        [f'{C0}.volumeMounts[1].mountPath: Invalid value: "/v": must be unique'],
    ),
    "probe without a handler": (
        with_container(readinessProbe={}),
        [f"{C0}.readinessProbe: Required value: must specify a handler type"],
    ),
    "probe with two handlers": (
        with_container(livenessProbe={"exec": {"command": ["x"]}, "tcpSocket": {"port": 1}}),
        [f"{C0}.livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"],
    ),
    "numbers of a probe": (
        with_container(livenessProbe={"exec": {"command": ["x"]}, "periodSeconds": -1, "successThreshold": 2}),
        [
            f"{C0}.livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
            f"{C0}.livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ],
    ),
    "hook that sleeps longer than the pod lives on": (
        {
            "terminationGracePeriodSeconds": 5,
            "containers": [container(lifecycle={"preStop": {"sleep": {"seconds": 6}}})],
        },
        [
            (
                f"{C0}.lifecycle.preStop.sleep: Invalid value: 6: must be non-negative and less than "
                "terminationGracePeriodSeconds (5)"
            )
        ],
    ),
    "toleration of everything": (
        {"tolerations": [{"operator": "Equal"}]},
        [
            (
                'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, '
                'which means "match all values and all keys"'
            )
        ],
    ),
    "time of a toleration": (
        {"tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 1}]},
        [
            (
                "spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when "
                "`tolerationSeconds` is set"
            )
        ],
    ),
    "node selector": (
        {"nodeSelector": {"k": "x y"}},
        [f'spec.nodeSelector: Invalid value: "x y": {VALUE}'],
    ),
    "operator of an affinity": (
        with_affinity(
            nodeAffinity={
                TERMS: {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "k", "operator": "Is"}, {"key": "k", "operator": "In"}]}
                    ]
                }
            }
        ),
        [
            (
                f"spec.affinity.nodeAffinity.{TERMS}.nodeSelectorTerms[0].matchExpressions[0].operator: Invalid value: "
                '"Is": not a valid selector operator'
            ),
            (
                f"spec.affinity.nodeAffinity.{TERMS}.nodeSelectorTerms[0].matchExpressions[1].values: Required value: "
                "must be specified when `operator` is 'In' or 'NotIn'"
            ),
        ],
    ),
    "topology of an affinity": (
        with_affinity(podAntiAffinity={TERMS: [{"topologyKey": "a b"}]}),
        [
            (
                f'spec.affinity.podAntiAffinity.{TERMS}[0].topologyKey: Invalid value: "a b": '
                f"{name_rules.qualified_name('a b')[0]}"
            )
        ],
    ),
    "weight": (
        with_affinity(
            podAffinity={
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 101, "podAffinityTerm": {"topologyKey": "k"}}
                ]
            }
        ),
        [
            (
                "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: "
                "101: must be in the range 1-100"
            )
        ],
    ),
    "spreading twice": (
        {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}] * 2},
        ['spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "{z, DoNotSchedule}"'],
    ),
    "gates": (
        {"schedulingGates": [{"name": "a"}, {"name": "a"}]},
        ['spec.schedulingGates[1]: Duplicate value: "a"'],
    ),
    "a node behind a gate": (
        {"schedulingGates": [{"name": "a"}], "nodeName": "n"},
        ["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"],
    ),
    "host name": ({"hostname": "a.b"}, ['spec.hostname: Invalid value: "a.b": must not contain dots']),
    "deadline": (
        {"activeDeadlineSeconds": 0},
        ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
    ),
    "own DNS without servers": (
        {"dnsPolicy": "None"},
        ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
    ),
    "alias": (
        {"hostAliases": [{"ip": "300.1.1.1", "hostnames": ["h"]}]},
        [
            (
                'spec.hostAliases[0].ip: Invalid value: "300.1.1.1": must be a valid IP address, (e.g. 10.9.8.7 or '
                "2001:db8::ffff)"
            )
        ],
    ),
    "user": (
        {"securityContext": {"runAsUser": -1}},
        ["spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"],
    ),
    "ephemeral containers": (
        {"ephemeralContainers": [{"name": "e", "image": "x"}]},
        ["spec.ephemeralContainers: Forbidden: cannot be set on create"],
    ),
}


@pytest.mark.parametrize("case", FAULTY)
@virtual
async def test_a_faulty_pod_is_refused_in_kubernetes_words(case: str) -> None:
    spec, expected = FAULTY[case]
    async with server() as client:
        answer = await client.post(PODS, pod(**spec))
        assert causes(answer) == expected
        assert (await client.get(f"{PODS}/p")).code == 404


@virtual
async def test_faults_come_in_the_order_of_the_spec() -> None:
    async with server() as client:
        answer = await client.post(
            PODS,
            pod(restartPolicy="x", hostname="_", containers=[container(name="_")], volumes=[{"name": "_"}]),
        )
    fields = [cause.partition(":")[0] for cause in causes(answer)]
    assert fields == ["spec.volumes[0].name", f"{C0}.name", "spec.restartPolicy", "spec.hostname"]
