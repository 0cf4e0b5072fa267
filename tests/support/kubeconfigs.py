"""Kubeconfigs for commands that connect to a test's server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]


def document(
    server: str, *, name: str = "here", user: Json | None = None, user_name: str = "", namespace: str = "",
    **cluster: str,
) -> Json:  # fmt: skip
    """A kubeconfig with one context of that name: a server, a user if given (by default of the same name), and a
    namespace if given. `cluster` are further fields of the cluster, with `_` for `-`."""
    known_as = user_name or name
    context = {
        "cluster": name,
        "user": "" if user is None else known_as,
        "namespace": namespace,
    }
    fields = {key.replace("_", "-"): value for key, value in cluster.items()}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server, **fields}}],
        "users": [] if user is None else [{"name": known_as, "user": user}],
        "contexts": [{"name": name, "context": {key: value for key, value in context.items() if value}}],
        "current-context": name,
    }


def write(path: Path, config: Json) -> Path:
    """Write it, readable only by its owner; returns the path."""
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def kubeconfig(folder: Path, url: str) -> str:
    """The path of a new one in this directory, whose context has the namespace `default`."""
    return str(write(folder / "kubeconfig", document(url, namespace="default")))
