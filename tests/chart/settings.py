"""Values that between them turn everything on that the chart has."""

from __future__ import annotations

from typing import Any

_SCHEDULERS = [{"name": "volcano"}, {"name": "other", "policy": "actions: allocate"}]
SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "policies": {"admission": {"mode": "policies"}},
    "cert-manager": {"admission": {"certificates": "cert-manager"}},
    "all": {
        "schedulers": _SCHEDULERS,
        "admission": {
            "checkQueueAccess": True,
            "countPlacedPods": True,
            "resourceGroups": "resourceGroups: []",
        },
        "controllers": {"sharding": "schedulerConfigs: []", "discovery": "networkTopologyDiscovery: []"},
        "webhooks": {"service": {"ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv6", "IPv4"]}},
        "networkPolicy": {"dns": True, "metricsFrom": [{"namespaceSelector": {}}]},
        "rbac": {"sshNamespaces": ["default"]},
        "image": {"pullSecrets": ["secret"]},
        "monitoring": {"dashboards": {"enabled": True}, "service": {"annotations": {"prometheus.io/scrape": "true"}}},
    },
}
