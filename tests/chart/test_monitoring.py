"""What the chart makes for Prometheus and Grafana."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.helm import CHART, Rendered, render
from tests.monitoring.alerts import shipped
from tests.monitoring.conftest import promtool
from tests.monitoring.test_alerts import thresholds

pytestmark = pytest.mark.usefixtures("helm")
__all__ = ["promtool"]

PROGRAMS = {"controllers", "scheduler", "webhooks"}
OPERATOR = ("--api-versions", "monitoring.coreos.com/v1")
RULE = {"prometheusRule": {"enabled": True}}


def rendered(monitoring: Mapping[str, Any], *flags: str, **values: Any) -> Rendered:
    made = render({"monitoring": monitoring, **values}, *flags)
    assert not made.error, made.error
    return made


def rules(made: Rendered) -> dict[str, dict[str, Any]]:
    (rule,) = made.of("PrometheusRule")
    return {one["alert"]: one for group in rule["spec"]["groups"] for one in group["rules"]}


def port_of(made: Rendered, component: str, name: str) -> int:
    """The number of a container's port."""
    (found,) = {
        port["containerPort"]
        for deployment in made.of("Deployment")
        if deployment["metadata"]["labels"]["app.kubernetes.io/component"] == component
        for port in deployment["spec"]["template"]["spec"]["containers"][0]["ports"]
        if port["name"] == name
    }
    return int(found)


def serving(made: Rendered, component: str) -> int:
    """The port on which the program serves its metrics, by its flags: webhooks serve them where they tell their
    health."""
    flag = "--healthz-address=:" if component == "webhooks" else "--listen-address=:"
    (found,) = {
        argument.removeprefix(flag)
        for deployment in made.of("Deployment")
        if deployment["metadata"]["labels"]["app.kubernetes.io/component"] == component
        for argument in deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        if argument.startswith(flag)
    }
    return int(found)


def test_nothing_needs_the_operator_by_default() -> None:
    made = rendered({})
    kinds = {item["apiVersion"].partition("/")[0] for item in made.objects}
    assert "monitoring.coreos.com" not in kinds
    assert not [item for item in made.of("ConfigMap") if "dashboard" in item["metadata"]["name"]]


def test_a_service_leads_to_the_metrics_of_each_program() -> None:
    made = rendered({})
    found = set()
    for service in made.of("Service"):
        if "vcbatch.dev/metrics" not in service["metadata"]["labels"]:
            continue
        component = service["spec"]["selector"]["app.kubernetes.io/component"]
        (port,) = service["spec"]["ports"]
        assert port_of(made, component, port["targetPort"]) == serving(made, component)
        assert service["spec"]["clusterIP"] == "None" and service["spec"]["publishNotReadyAddresses"]
        found.add(component)
    assert found == PROGRAMS
    assert "vcbatch-webhooks-metrics" not in rendered({}, admission={"mode": "none"}).names("Service")
    assert not [name for name in rendered({"service": {"enabled": False}}).names("Service") if "metrics" in name]


def test_network_policies_let_prometheus_in() -> None:
    made = rendered({})
    assert len(made.of("NetworkPolicy")) == len(PROGRAMS)
    for component in PROGRAMS:
        policy = made.one("NetworkPolicy", f"vcbatch-{component}")
        assert serving(made, component) in {
            port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]
        }


def test_a_service_monitor_selects_these_services() -> None:
    settings = {"enabled": True, "interval": "15s", "scrapeTimeout": "5s", "labels": {"release": "prometheus"},
                "namespace": "monitoring", "metricRelabelings": [{"action": "drop", "regex": "x"}]}  # fmt: skip
    made = rendered({"serviceMonitor": settings}, *OPERATOR)
    (monitor,) = made.of("ServiceMonitor")
    assert monitor["metadata"]["namespace"] == "monitoring"
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["metadata"]["labels"]["app.kubernetes.io/instance"] == "vcbatch"
    chosen = monitor["spec"]["selector"]["matchLabels"].items()
    services = [one for one in made.of("Service") if chosen <= one["metadata"]["labels"].items()]
    assert {one["spec"]["selector"]["app.kubernetes.io/component"] for one in services} == PROGRAMS
    assert monitor["spec"]["namespaceSelector"]["matchNames"] == [services[0]["metadata"]["namespace"]]
    (endpoint,) = monitor["spec"]["endpoints"]
    assert all(endpoint["port"] in {port["name"] for port in one["spec"]["ports"]} for one in services)
    assert (endpoint["interval"], endpoint["scrapeTimeout"], endpoint["path"]) == ("15s", "5s", "/metrics")
    assert endpoint["metricRelabelings"] == settings["metricRelabelings"]


def test_pod_monitors_select_the_pods() -> None:
    made = rendered({"podMonitor": {"enabled": True}, "service": {"enabled": False}}, *OPERATOR)
    found = set()
    for monitor in made.of("PodMonitor"):
        component = monitor["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"]
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        assert port_of(made, component, endpoint["port"]) == serving(made, component)
        found.add(component)
    assert found == PROGRAMS


def test_the_rule_is_the_file_with_the_defaults() -> None:
    assert rules(rendered(RULE, *OPERATOR)) == shipped()
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = schema["properties"]["monitoring"]["properties"]["prometheusRule"]["properties"]["thresholds"]
    defaults = {name: node["default"] for name, node in values["properties"].items()}
    assert defaults == {name: float(number) for name, number in thresholds().items()}


@pytest.mark.parametrize("name", thresholds())
def test_a_threshold_is_put_into_its_alert_and_no_other(name: str) -> None:
    value = 0.5 if name.endswith("Ratio") else 1234567.5
    made = rules(rendered({"prometheusRule": {"enabled": True, "thresholds": {name: value}}}, *OPERATOR))
    changed = {alert: rule["expr"] for alert, rule in made.items() if rule != shipped()[alert]}
    (expr,) = changed.values()
    (number,) = re.findall(rf"(\S+) # {name}\b", expr)
    assert float(number) == value


def test_prometheus_takes_rules_with_other_thresholds(promtool: Path, tmp_path: Path) -> None:
    given = {name: 0.5 if name.endswith("Ratio") else 1e9 for name in thresholds()}
    made = rendered({"prometheusRule": {"enabled": True, "thresholds": given}}, *OPERATOR)
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(made.of("PrometheusRule")[0]["spec"]))
    done = subprocess.run([promtool, "check", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_alerts_may_be_left_out_labelled_and_explained_elsewhere() -> None:
    settings = {
        "enabled": True,
        "disabled": ["VcbatchGangWaitsTooLong", "VcbatchReconcileFailing"],
        "alertLabels": {"team": "batch", "severity": "none"},
        "runbookUrl": "https://runbooks.example/vcbatch/",
    }
    made = rules(rendered({"prometheusRule": settings}, *OPERATOR))
    assert set(made) == set(shipped()) - set(settings["disabled"])
    for name, rule in made.items():
        assert rule["labels"] == {"severity": shipped()[name]["labels"]["severity"], "team": "batch"}
        assert rule["annotations"]["runbook_url"] == f"https://runbooks.example/vcbatch/{name}.md"


def test_dashboards_are_config_maps_that_the_sidecar_finds() -> None:
    settings = {"enabled": True, "namespace": "grafana", "annotations": {"grafana_folder": "Batch"}}
    made = rendered({"dashboards": settings})
    files = {path.name: path.read_text() for path in (CHART / "files/dashboards").glob("*.json")}
    found = {}
    for item in made.of("ConfigMap"):
        if item["metadata"]["labels"].get("grafana_dashboard") == "1":
            assert item["metadata"]["namespace"] == "grafana"
            assert item["metadata"]["annotations"] == {"grafana_folder": "Batch"}
            found |= item["data"]
    assert {name: json.loads(text) for name, text in found.items()} == {
        name: json.loads(text) for name, text in files.items()
    }


@pytest.mark.parametrize(
    ("monitoring", "flags", "said"),
    [
        ({"serviceMonitor": {"enabled": True}}, (), "monitoring.serviceMonitor.enabled needs the Prometheus operator"),
        ({"podMonitor": {"enabled": True}}, (), "monitoring.podMonitor.enabled needs the Prometheus operator"),
        (RULE, (), "monitoring.prometheusRule.enabled needs the Prometheus operator"),
        (
            {"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}},
            OPERATOR,
            "serviceMonitor and podMonitor exclude each other",
        ),
        (
            {"serviceMonitor": {"enabled": True}, "service": {"enabled": False}},
            OPERATOR,
            "needs monitoring.service.enabled",
        ),
        ({"prometheusRule": {"thresholds": {"apiErrorRatio": 5}}}, (), "'/monitoring/prometheusRule/thresholds/api"),
        ({"prometheusRule": {"thresholds": {"waits": 5}}}, (), "'waits' not allowed"),
        ({"serviceMonitor": {"interval": "often"}}, (), "'/monitoring/serviceMonitor/interval'"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_can_not_work_is_refused(monitoring: dict[str, Any], flags: tuple[str, ...], said: str) -> None:
    assert said in render({"monitoring": monitoring}, *flags).error
