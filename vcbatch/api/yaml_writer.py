"""The only writer of YAML: `kubectl` and `vcbatch.api.yaml_reader` read its output as the same values.

PyYAML quotes strings that it would not read as strings itself. `kubectl` reads more words and numbers as other types:
`n`, `1e3` and `0o17` are False, 1000 and 15. Those are quoted as well.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import yaml

from vcbatch.api.yaml_scalars import STR, ScalarError, resolve

UNLIMITED: Final = 2**31 - 1
_Base: type[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def dump(
    *documents: Any,
    sort_keys: bool = False,
    width: int = 80,
    flow: bool | None = False,
    ascii_only: bool = False,
    block_if: str = "",
) -> str:
    """JSON values as YAML documents, without anchors.

    Args:
        sort_keys: sort the keys of mappings, as Kubernetes does.
        width: characters of a line, beyond which a text is wrapped at its next space.
        flow: True writes `{...}` and `[...]` everywhere, None in the innermost collections only.
        ascii_only: escape all other characters.
        block_if: texts that contain one of these characters are written as blocks.
    """
    return yaml.dump_all(
        documents,
        Dumper=_dumper(block_if),
        sort_keys=sort_keys,
        width=width,
        default_flow_style=flow,
        allow_unicode=not ascii_only,
        explicit_start=len(documents) > 1,
    )


@cache
def _dumper(block_if: str) -> type[Any]:
    class Dumper(_Base):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def string(dumper: Any, value: str) -> Any:
        # Where PyYAML quotes by itself, no style is set: it would keep the collection from being written as `{...}`.
        bare = dumper.resolve(yaml.ScalarNode, value, (True, False)) == STR
        style = "'" if bare and _is_ambiguous(value) else "|" if any(one in value for one in block_if) else None
        return dumper.represent_scalar(STR, value, style=style)

    Dumper.add_representer(str, string)
    return Dumper


def _is_ambiguous(value: str) -> bool:
    """Whether kubectl reads the bare text as something else than this string."""
    try:
        return not isinstance(resolve(value, tag=None, plain=True), str)
    except ScalarError:
        return True
