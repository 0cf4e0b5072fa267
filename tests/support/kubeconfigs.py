"""Kubeconfigs for commands that are to find a server of a test."""

from __future__ import annotations

import json
from pathlib import Path


def kubeconfig(folder: Path, url: str) -> str:
    """The path of a new one in this folder, whose context has the namespace `default`."""
    file = folder / "kubeconfig"
    document = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "namespace": "default"}}],
        "clusters": [{"name": "here", "cluster": {"server": url}}],
    }
    file.write_text(json.dumps(document))
    return str(file)
