"""Write the one-file manifest, helm/manifest/vcbatch.yaml, from the chart with its default values.

`python helm/manifest.py HELM` writes it with that Helm client; with `--check` it writes nothing, and ends with 1 where
it is out of date. `kubectl apply --server-side -f` takes the file, and `vcbatch install` carries it in the wheel.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vcbatch.api import yaml_writer
from vcbatch.api.yaml_reader import documents
from vcbatch.cli.install.kinds import ordered

Json = dict[str, Any]

CHART = Path(__file__).parent / "vcbatch"
MANIFEST = Path(__file__).parent / "manifest" / "vcbatch.yaml"
NAMESPACE = "volcano-system"
_MANAGED_BY = "app.kubernetes.io/managed-by"
_COMPONENT = "app.kubernetes.io/component"
_INSTALLER = "vcbatch-install"
_HEADER = """\
# vcbatch with the defaults of its Helm chart, written by `make manifest`.
#
#   kubectl apply --server-side -f vcbatch.yaml     twice where it says that a kind isn't known yet
#
# `vcbatch install` applies the same in order, waits, and lets choose namespace, image and admission.
"""


def objects(rendered: str) -> Iterator[Json]:
    """The namespace and what the chart renders, but for what only `helm test` uses and Helm's own labels."""
    yield {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {_MANAGED_BY: _INSTALLER}},
    }
    for document in documents(rendered.encode()):
        found = document.value
        if not isinstance(found, dict):
            continue
        labels = found["metadata"].setdefault("labels", {})
        if labels.get(_COMPONENT) == "test":
            continue
        labels[_MANAGED_BY] = _INSTALLER
        labels.pop("helm.sh/chart", None)
        annotations = found["metadata"].get("annotations", {})
        annotations.pop("helm.sh/resource-policy", None)
        if not annotations:
            found["metadata"].pop("annotations", None)
        yield found


def text(helm: str) -> str:
    """The manifest. Raises subprocess.CalledProcessError."""
    command = [helm, "template", "vcbatch", str(CHART), "--namespace", NAMESPACE, "--no-hooks"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = ordered(list(objects(done.stdout)))
    return _HEADER + "---\n" + "---\n".join(yaml_writer.dump(one, width=110, flow=None) for one in found)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("helm", help="the Helm client")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args(arguments)
    try:
        wanted = text(given.helm)
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"error: helm template: {error.stderr}")
        return 1
    if MANIFEST.is_file() and MANIFEST.read_text(encoding="utf-8") == wanted:
        return 0
    if given.check:
        sys.stderr.write(f"error: {MANIFEST} is out of date\n  Run `make manifest`.\n")
        return 1
    MANIFEST.parent.mkdir(exist_ok=True)
    MANIFEST.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
