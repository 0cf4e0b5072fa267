"""YAML bodies as JSON values: the schema of YAML 1.2's JSON subset that Kubernetes reads, bounded."""

from __future__ import annotations

from typing import Any

import yaml

from vcbatch.local.apiserver.errors import bad_request

try:
    from yaml import CSafeLoader as _Base
except ImportError:  # PyYAML built without libyaml
    from yaml import SafeLoader as _Base  # type: ignore[assignment]

Json = dict[str, Any]


class _Loader(_Base):
    """Dates stay strings; aliases are refused, since a few nested ones make gigabytes."""

    duplicates: list[str]

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not supported")
        return super().compose_node(parent, index)


def _mapping(loader: _Loader, node: yaml.MappingNode) -> Json:
    result: Json = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if isinstance(key, bool):
            key = "true" if key else "false"
        elif key is None:
            key = "null"
        key = str(key)
        if key in result:
            fault = f'key "{key}" already set in map'
            loader.duplicates.append(f"line {key_node.start_mark.line + 1}: {fault}")
        result[key] = loader.construct_object(value_node, deep=True)
    return result


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Base.yaml_implicit_resolvers.items()
}
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def load(body: bytes) -> tuple[Any, list[str]]:
    """The document and its duplicate keys; raises `StatusError` 400."""
    loader = _Loader(body)
    loader.duplicates = []
    try:
        value = loader.get_single_data()
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        text = " ".join(str(error).split())
        raise bad_request(f"error converting YAML to JSON: yaml: {text}") from None
    finally:
        loader.dispose()
    return value, loader.duplicates


def dump(value: Any) -> bytes:
    """A JSON value as YAML, keys sorted as Kubernetes sorts them."""
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text = yaml.dump(value, Dumper=dumper, sort_keys=True, allow_unicode=True, default_flow_style=False)
    return text.encode()
