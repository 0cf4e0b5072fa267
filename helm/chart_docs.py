"""Write the chart's values.yaml and README.md from its values.schema.json, which alone describes values.

`python helm/chart_docs.py` writes them; with `--check` it writes nothing, names what is out of date and ends with 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

Json = Mapping[str, Any]

CHART = Path(__file__).parent / "vcbatch"
_WIDTH = 116
_HEADER = """\
# Written by `make chart-docs` from values.schema.json, where each value is described and checked. README.md has the
# same as a table; docs/install.md says how to use them.
"""
_README = """\
# Chart vcbatch

{description}. [docs/install.md](../../docs/install.md) says how to install, upgrade and remove it.

```
helm install vcbatch helm/vcbatch --namespace volcano-system --create-namespace --wait
helm test vcbatch --namespace volcano-system --logs
```

Kubernetes {versions}. The chart has no hooks but the pods of `helm test`. Its CRDs are part of the release and are kept
when it is uninstalled.

## Values

Written by `make chart-docs` from [values.schema.json](values.schema.json), which Helm checks values against: an unknown
key, a wrong type or a value out of bounds is refused with its path.

| Value | Type | Default | |
|---|---|---|---|
{rows}
"""


class _Dumper(yaml.SafeDumper):
    """Lists indented below their key, as in the templates."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def resolved(node: Json, schema: Json) -> dict[str, Any]:
    """The node with what its references say; what it says itself goes first."""
    merged: dict[str, Any] = {}
    for reference in [*node.get("allOf", ()), *([node] if "$ref" in node else ())]:
        merged |= schema["definitions"][reference["$ref"].rpartition("/")[2]]
    return merged | {key: value for key, value in node.items() if key not in ("allOf", "$ref")}


def values_text(schema: Json) -> str:
    """values.yaml: every default below its description."""
    lines = [_HEADER.rstrip("\n"), ""]
    for name, node in schema["properties"].items():
        section = [*_value(name, resolved(node, schema), schema, 0)]
        lines += [*section, ""] if section else []
    return "\n".join(lines[:-1]) + "\n"


def _value(name: str, node: Json, schema: Json, depth: int) -> Iterator[str]:
    indent = "  " * depth
    if "default" not in node and "properties" not in node:
        return
    yield from textwrap.wrap(
        node["description"], _WIDTH - len(indent), initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# "
    )
    if "default" in node:
        text = yaml.dump({name: node["default"]}, Dumper=_Dumper, sort_keys=False, width=_WIDTH)
        yield from (f"{indent}{line}" for line in text.splitlines())
        return
    yield f"{indent}{name}:"
    for inner, value in node["properties"].items():
        yield from _value(inner, resolved(value, schema), schema, depth + 1)


def readme_text(schema: Json, chart: Json) -> str:
    """README.md: what the chart is, and a row for each value."""
    rows = [row for name, node in schema["properties"].items() for row in _rows(name, resolved(node, schema), schema)]
    return _README.format(description=chart["description"], versions=chart["kubeVersion"], rows="\n".join(rows))


def _rows(path: str, node: Json, schema: Json) -> Iterator[str]:
    if "properties" not in node:
        default = f"`{json.dumps(node['default'], ensure_ascii=False)}`" if "default" in node else ""
        cells = (f"`{path}`", _kind(node), default, node["description"])
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    for inner, value in node.get("properties", {}).items():
        yield from _rows(f"{path}.{inner}", resolved(value, schema), schema)
    items = resolved(node.get("items", {}), schema)
    for inner, value in items.get("properties", {}).items():
        yield from _rows(f"{path}[].{inner}", resolved(value, schema), schema)


def _kind(node: Json) -> str:
    if "enum" in node:
        return ", ".join(f"`{value}`" if value else "empty" for value in node["enum"])
    kinds = node.get("type", "")
    text = " or ".join(kinds) if isinstance(kinds, list) else kinds
    least, most = node.get("minimum"), node.get("maximum")
    if least is not None and most is not None:
        return f"{text}, {least} to {most}"
    return f"{text}, at least {least}" if least is not None else text


def texts(chart: Path = CHART) -> dict[Path, str]:
    """What the files are to contain."""
    schema = json.loads((chart / "values.schema.json").read_text(encoding="utf-8"))
    about = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))
    return {chart / "values.yaml": values_text(schema), chart / "README.md": readme_text(schema, about)}


def main() -> int:
    """Write the files, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 where a file is out of date")
    check = parser.parse_args().check
    stale = [
        (path, text) for path, text in texts().items() if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in stale:
        if check:
            sys.stderr.write(f"error: {path} is out of date\nRun `make chart-docs`.\n")
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
