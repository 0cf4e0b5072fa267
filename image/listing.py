"""Print every image that an installation uses, one a line, for a mirror: `listing.py [--registry HOST] [VALUES...]`.

The images are those of the chart's values (`helm/vcbatch/values.yaml`): each mapping `image` with a repository. VALUES
are files of your own values, of which later ones win, as with `helm --values`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
CHART = ROOT / "helm/vcbatch"

Json = dict[str, Any]


class ValuesError(Exception):
    """The values name no image, or can't be read; the message says which."""


def merged(base: Json, other: Json) -> Json:
    """`other` over `base`, mapping by mapping, as Helm merges values."""
    result = dict(base)
    for key, value in other.items():
        own = result.get(key)
        result[key] = merged(own, value) if isinstance(own, dict) and isinstance(value, dict) else value
    return result


def images(values: Json, *, version: str, registry: str = "") -> list[str]:
    """The references of all images in `values`, sorted and each once; `version` is the tag of those without one.

    `registry` takes the place of their own, and so does `global.imageRegistry`.
    """
    shared = values.get("global") or {}
    return sorted(
        {
            _reference(image, version, registry or str(shared.get("imageRegistry") or ""))
            for image in _mappings(values)
            if image.get("repository")
        }
    )


def _mappings(value: object) -> Iterator[Json]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "image" and isinstance(inner, dict):
                yield inner
            else:
                yield from _mappings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _mappings(inner)


def _reference(image: Json, version: str, registry: str) -> str:
    host = registry or str(image.get("registry") or "")
    name = f"{host}/{image['repository']}" if host else str(image["repository"])
    if image.get("digest"):
        return f"{name}@{image['digest']}"
    return f"{name}:{image.get('tag') or version}"


def _load(file: Path) -> Json:
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValuesError(f"{file}: {error}") from error
    if found is not None and not isinstance(found, dict):
        raise ValuesError(f"{file}: no mapping")
    return found or {}


def listed(chart: Path, files: Sequence[Path], registry: str = "") -> list[str]:
    """The images of the chart with these values. Raises `ValuesError`."""
    values: Json = {}
    for file in (chart / "values.yaml", *files):
        values = merged(values, _load(file))
    found = images(values, version=str(_load(chart / "Chart.yaml").get("appVersion") or ""), registry=registry)
    if not found:
        raise ValuesError(f"{chart / 'values.yaml'}: no image with a repository")
    return found


def main() -> int:
    """0, or 1 where the values can't be read."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("values", nargs="*", type=Path, metavar="VALUES")
    parser.add_argument("--registry", default="", help="in place of the images' own")
    given = parser.parse_args()
    try:
        print("\n".join(listed(CHART, given.values, given.registry)))
    except ValuesError as error:
        print(f"error: {error}\nRun it in a checkout with its chart, and give files of values.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
