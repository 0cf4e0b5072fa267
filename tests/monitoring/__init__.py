"""Alerts, runbooks and dashboards: what they say, and that they work on a Prometheus."""
