"""Hook of MkDocs: files of the repository outside of docs/ that pages link to become part of the site.

Markdown files in `PAGES` become pages, all others are copied, so that every link works on GitHub and on the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security-reports.md",
    "helm/vcbatch/README.md": "chart.md",
}
"""File of the repository -> page of the site."""
COPIED = "files"
_LINK = re.compile(r"(?<!!)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages and the files that any page links to."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    wanted = {place for file in files.documentation_pages() for place in _linked(file) if place not in PAGES}
    for place in sorted(wanted):
        files.append(File.generated(config, f"{COPIED}/{place}", abs_src_path=str(ROOT / place)))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """The page with links to where the files are on the site."""
    file = page.file

    def replaced(link: re.Match[str]) -> str:
        place = posixpath.normpath(posixpath.join(posixpath.dirname(_source(file)), link[1]))
        if not (ROOT / place).exists():
            return link[0]  # MkDocs reports it
        below = place.startswith("docs/")
        target = place.removeprefix("docs/") if below else PAGES.get(place, f"{COPIED}/{place}")
        return f"]({posixpath.relpath(target, posixpath.dirname(file.src_uri) or '.')}{link[2] or ''})"

    return _LINK.sub(replaced, markdown)


def _source(file: Any) -> str:
    """The file's path in the repository."""
    return Path(file.abs_src_path).relative_to(ROOT).as_posix()


def _linked(file: Any) -> list[str]:
    """The files outside of docs/ that the page links to, from the repository's root."""
    text = _FENCE.sub("", Path(file.abs_src_path).read_text(encoding="utf-8"))
    folder = posixpath.dirname(_source(file))
    places = (posixpath.normpath(posixpath.join(folder, link[1])) for link in _LINK.finditer(text))
    return [place for place in places if not place.startswith("docs/") and (ROOT / place).is_file()]
