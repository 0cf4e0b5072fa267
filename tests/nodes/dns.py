"""CoreDNS in the cluster: the names of Services and of pods."""

from __future__ import annotations

from tests.cluster.controlplane import ControlPlane
from tests.nodes.images import COREDNS
from tests.nodes.node import CLUSTER_DNS

_MANIFEST = f"""\
apiVersion: v1
kind: ServiceAccount
metadata: {{name: coredns, namespace: kube-system}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: coredns}}
rules:
  - {{apiGroups: [""], resources: [services, pods, namespaces], verbs: [list, watch]}}
  - {{apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: coredns}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: coredns}}
subjects: [{{kind: ServiceAccount, name: coredns, namespace: kube-system}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: coredns, namespace: kube-system}}
data:
  Corefile: |
    .:53 {{
        errors
        health
        ready
        kubernetes cluster.local in-addr.arpa ip6.arpa {{
            pods insecure
        }}
        cache 2
    }}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: coredns, namespace: kube-system}}
spec:
  selector: {{matchLabels: {{k8s-app: kube-dns}}}}
  template:
    metadata: {{labels: {{k8s-app: kube-dns}}}}
    spec:
      serviceAccountName: coredns
      priorityClassName: system-cluster-critical
      dnsPolicy: Default
      terminationGracePeriodSeconds: 1
      containers:
        - name: coredns
          image: {COREDNS}
          imagePullPolicy: Never
          args: ["-conf", "/etc/coredns/Corefile"]
          readinessProbe: {{httpGet: {{path: /ready, port: 8181}}, periodSeconds: 1}}
          volumeMounts: [{{name: configuration, mountPath: /etc/coredns}}]
      volumes: [{{name: configuration, configMap: {{name: coredns}}}}]
---
apiVersion: v1
kind: Service
metadata: {{name: kube-dns, namespace: kube-system}}
spec:
  clusterIP: {CLUSTER_DNS}
  selector: {{k8s-app: kube-dns}}
  ports: [{{name: dns, port: 53, protocol: UDP}}, {{name: dns-tcp, port: 53, protocol: TCP}}]
"""


def install(plane: ControlPlane) -> None:
    """Apply its manifest, without waiting: a pod on each node, so that names are found when a node is gone."""
    plane.must_kubectl("apply", "--server-side", "-f", "-", stdin=_MANIFEST)


def wait_ready(plane: ControlPlane, timeout: int = 120) -> None:
    """Return once each node has one that answers."""
    plane.must_kubectl("rollout", "status", "daemonset/coredns", "-n", "kube-system", f"--timeout={timeout}s")
