"""The pages of the custom resources, from the CustomResourceDefinitions in `crds/`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from docs.tools.page import ROOT, code, page, table

Json = Mapping[str, Any]

_POD_TEMPLATE = "A pod template, as in Kubernetes."
_LIMITS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "matches `{}`",
    "default": "default `{}`",
}


def kind_pages() -> dict[str, str]:
    """File name -> text."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # of libyaml, several times as fast
    definitions = [
        yaml.load(file.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506
        for file in sorted((ROOT / "crds").glob("*.yaml"))
    ]
    definitions.sort(key=lambda one: str(one["spec"]["names"]["kind"]))
    pages = {_file_name(one): _kind(one) for one in definitions}
    rows = [
        [f"[{one['spec']['names']['kind']}]({_file_name(one)})", code(one["spec"]["group"]), _first_sentence(one)]
        for one in definitions
    ]
    overview = page(
        "Custom resources",
        "These are the fields of the CustomResourceDefinitions that vcbatch installs. They are Volcano's; the "
        "[differences](../differences.md) and the [fields that can be changed](../mutability.md) are listed "
        "separately.\n",
        table(("Kind", "Group", "Description"), rows),
    )
    return {"kinds.md": overview, **pages}


def _file_name(definition: Json) -> str:
    return f"kind-{definition['spec']['names']['kind'].lower()}.md"


def _schema(definition: Json) -> Json:
    return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def _first_sentence(definition: Json) -> str:
    return str(_schema(definition).get("description", ""))


def _kind(definition: Json) -> str:
    spec = definition["spec"]
    names = spec["names"]
    version = spec["versions"][0]
    schema = _schema(definition)
    scope = "in a namespace" if spec["scope"] == "Namespaced" else "of the whole cluster"
    called = [names["plural"], names["singular"], *names.get("shortNames", ())]
    parts = [
        f"{schema.get('description', '')}\n",
        table(
            ("", ""),
            [
                ["apiVersion", code(f"{spec['group']}/{version['name']}")],
                ["kind", code(names["kind"])],
                ["scope", scope],
                ["names for kubectl", ", ".join(map(code, called))],
                ["subresources", ", ".join(map(code, version.get("subresources", {}))) or "none"],
            ],
        ),
    ]
    columns = version.get("additionalPrinterColumns")
    for section, node in schema["properties"].items():
        if section in ("apiVersion", "kind", "metadata"):
            continue
        rows = list(_fields(section, node))
        parts += [f"## {section}\n", table(("Field", "Type", "Description"), rows)]
    if columns:
        rows = [
            [one["name"], code(one["jsonPath"]), "with `-o wide`" if one.get("priority") else ""] for one in columns
        ]
        parts += ["## Columns of kubectl get\n", table(("Column", "Field", ""), rows)]
    return page(names["kind"], *(part + "\n" for part in parts))


def _fields(path: str, node: Json) -> Iterator[list[str]]:
    yield [code(path), _type(node), _description(node)]
    if _is_pod_template(node):
        return
    inner, suffix = node, ""
    if "items" in inner:
        inner, suffix = inner["items"], "[]"
    elif isinstance(inner.get("additionalProperties"), dict):
        inner, suffix = inner["additionalProperties"], ".NAME"
    if _is_pod_template(inner):
        return
    for name, below in inner.get("properties", {}).items():
        yield from _fields(f"{path}{suffix}.{name}", below)


def _is_pod_template(node: Json) -> bool:
    below = node.get("properties", {})
    return "containers" in below.get("spec", {}).get("properties", {})


def _type(node: Json) -> str:
    if node.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if "enum" in node:
        return ", ".join(code(str(value)) for value in node["enum"])
    kind = str(node.get("type", "any"))
    if kind == "array":
        return f"list of {_type(node['items'])}"
    if kind == "object" and isinstance(node.get("additionalProperties"), dict):
        return f"map of {_type(node['additionalProperties'])}"
    return f"{kind} ({node['format']})" if node.get("format") else kind


def _description(node: Json) -> str:
    text = str(node.get("description", ""))
    if _is_pod_template(node):
        text = f"{text} {_POD_TEMPLATE}".strip()
    limits = [form.format(node[key]) for key, form in _LIMITS.items() if key in node and form]
    rules = [f"{rule['message']}" for rule in node.get("x-kubernetes-validations", ()) if "message" in rule]
    return " ".join(filter(None, (text, f"({', '.join(limits)})" if limits else "", *rules)))
