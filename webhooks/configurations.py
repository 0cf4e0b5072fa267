"""The webhook configurations by which an API server asks the service: the shipped YAML, pointed at where it runs."""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]


def read(folder: Path) -> list[Json]:
    """The configurations in a folder of YAML files, in the order of the files' names."""
    return [
        document
        for file in sorted(folder.glob("*.yaml"))
        for document in yaml.safe_load_all(file.read_text())
        if document
    ]


def pointed(configurations: Sequence[Mapping[str, Any]], *, ca_bundle: bytes, url: str = "") -> list[Json]:
    """Copies that trust `ca_bundle` (PEM). With `url` (`https://HOST:PORT`) the API server asks there, in the place of
    a Service of the cluster; the path stays."""
    encoded = base64.b64encode(ca_bundle).decode()
    made = [copy.deepcopy(dict(configuration)) for configuration in configurations]
    for configuration in made:
        for webhook in configuration["webhooks"]:
            client = webhook["clientConfig"]
            if url:
                path = client["service"]["path"]
                client = webhook["clientConfig"] = {"url": f"{url.rstrip('/')}{path}"}
            client["caBundle"] = encoded
    return made
