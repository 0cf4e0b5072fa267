"""The documentation site: each page can be reached, and each entry of the navigation is a page.

`make docs` checks links and anchors; this needs nothing but the files.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from docs.tools.source import module, named

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"


class _Loader(yaml.SafeLoader):
    """MkDocs' settings name Python functions by tags, which are of no interest here."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda _loader, _suffix, _node: None)


def _settings() -> dict[str, Any]:
    return yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader=_Loader)  # a subclass of SafeLoader


def _entries(nav: Any) -> Iterator[str]:
    match nav:
        case str():
            yield nav
        case list():
            for one in nav:
                yield from _entries(one)
        case dict():
            for one in nav.values():
                yield from _entries(one)


def _pages_from_elsewhere() -> dict[str, str]:
    (pages,) = (one.node for one in named(module("docs.tools.mkdocs_hook").body) if one.name == "PAGES")
    assert isinstance(pages, ast.Assign)
    return ast.literal_eval(pages.value)


def test_the_navigation_has_each_page_once() -> None:
    entries = list(_entries(_settings()["nav"]))
    pages = {file.relative_to(DOCS).as_posix() for file in DOCS.rglob("*.md")} | set(_pages_from_elsewhere().values())
    assert sorted(entries) == sorted(pages)


def test_pages_from_outside_of_the_directory_exist_and_hide_no_other() -> None:
    for source, page in _pages_from_elsewhere().items():
        assert (ROOT / source).is_file()
        assert not (DOCS / page).exists()


def test_the_site_has_four_doors_and_one_for_contributors() -> None:
    doors = [name for entry in _settings()["nav"] for name in entry]
    assert doors == ["Home", "Get started", "User guide", "Operator guide", "Reference", "Contributing"]


def test_images_load_nothing_from_other_servers() -> None:
    images = list((DOCS / "images").glob("*.svg"))
    assert images
    for image in images:
        text = image.read_text(encoding="utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert "http" not in text, image.name


def test_the_site_is_pinned() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pins = dict(line.split("==") for line in (ROOT / "constraints-docs.txt").read_text(encoding="utf-8").splitlines())
    wanted = {requirement.partition(">")[0] for requirement in project["dependency-groups"]["docs"]}
    assert wanted <= pins.keys()
