"""Write what an image consists of as CycloneDX JSON: `sbom.py [--output FILE] IMAGE`.

IMAGE is an OCI archive, a `docker save` archive or a folder with an unpacked root file system. Listed are Python's
distributions (`*.dist-info`), Debian's packages (dpkg's database) and a Python that no package brought. The same image
gives the same document: it has no time but the image's own.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tarfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from email.parser import HeaderParser
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

Json = dict[str, Any]

_SPEC = "1.6"
_SEEN = re.compile(
    r"^(?:.*/(?:site|dist)-packages/[^/]+\.dist-info/METADATA"
    r"|var/lib/dpkg/status(?:\.d/[^/]+)?"
    r"|(?:etc|usr/lib)/os-release"
    r"|usr/local/bin/python3\.\d+)$"
)
"""The files that are read."""
_LARGEST = 32 << 20
_WHITEOUT = ".wh."
_REQUIREMENT = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)")
_LABEL = "org.opencontainers.image."


class ImageError(Exception):
    """The image can't be read; the message says why."""


@dataclass(slots=True)
class Content:
    """What is read of an image: its files by path, its digest and its configuration."""

    files: dict[str, bytes] = field(default_factory=dict)
    digest: str = ""
    config: Json = field(default_factory=dict)


def read(path: Path) -> Content:
    """The content of an archive or a folder. Raises `ImageError`."""
    try:
        return _folder(path) if path.is_dir() else _archive(path)
    except (OSError, tarfile.TarError, ValueError, KeyError) as error:
        raise ImageError(f"{path}: {error}") from error


def _folder(path: Path) -> Content:
    content = Content()
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path).as_posix()
        if _SEEN.match(name) and file.is_file() and not file.is_symlink():
            with file.open("rb") as stream:
                content.files[name] = stream.read(_LARGEST)
    return content


def _archive(path: Path) -> Content:
    content = Content()
    with tarfile.open(path) as packed:

        def member(name: str) -> IO[bytes]:
            found = packed.extractfile(name)
            if found is None:
                raise ValueError(f"{name} is no file")
            return found

        def blob(digest: str) -> IO[bytes]:
            return member("blobs/" + digest.replace(":", "/"))

        if "manifest.json" in packed.getnames():  # of `docker save`, which may write an index as well
            (entry,) = json.load(member("manifest.json"))
            config = json.load(member(entry["Config"]))
            layers = [member(name) for name in entry["Layers"]]
        else:
            manifests = json.load(member("index.json"))["manifests"]
            if len(manifests) != 1:
                raise ValueError(f"{len(manifests)} images in one archive: give one of one platform")
            content.digest = manifests[0]["digest"]
            manifest = json.load(blob(content.digest))
            config = json.load(blob(manifest["config"]["digest"]))
            layers = [blob(layer["digest"]) for layer in manifest["layers"]]
        content.config = config
        for layer in layers:
            _add(content.files, layer)
    return content


def _add(files: dict[str, bytes], layer: IO[bytes]) -> None:
    with tarfile.open(fileobj=layer) as packed:
        for member in packed:
            name = member.name.removeprefix("./")
            folder, _, last = name.rpartition("/")
            if last.startswith(_WHITEOUT):
                gone = folder if last == f"{_WHITEOUT}{_WHITEOUT}.opq" else f"{folder}/{last.removeprefix(_WHITEOUT)}"
                for known in [known for known in files if known == gone or known.startswith(f"{gone}/")]:
                    del files[known]
            elif member.isfile() and _SEEN.match(name):
                stream = packed.extractfile(member)
                files[name] = stream.read(_LARGEST) if stream else b""


def document(content: Content) -> Json:
    """The CycloneDX document."""
    labels: Mapping[str, str] = (content.config.get("config") or {}).get("Labels") or {}
    python = sorted(_python(content.files), key=lambda one: one["bom-ref"])
    others = sorted(
        [*_debian(content.files), *_interpreters(content)], key=lambda one: one["bom-ref"]
    )  # a package may be there for two architectures
    image: Json = {
        "type": "container",
        "bom-ref": "image",
        "name": labels.get(f"{_LABEL}title") or "vcbatch",
        **({"version": version} if (version := labels.get(f"{_LABEL}version")) else {}),
    }
    if content.digest:
        image["hashes"] = [{"alg": "SHA-256", "content": content.digest.partition(":")[2]}]
    if source := labels.get(f"{_LABEL}source"):
        image["externalReferences"] = [{"type": "vcs", "url": source}]
    edges = dict(_edges(content.files, python))
    required = {ref for refs in edges.values() for ref in refs}
    top = [one["bom-ref"] for one in [*python, *others] if one["bom-ref"] not in required]
    made = {"timestamp": created} if (created := labels.get(f"{_LABEL}created")) else {}
    found: Json = {
        "bomFormat": "CycloneDX",
        "specVersion": _SPEC,
        "version": 1,
        "metadata": {**made, "component": image},
        "components": [*python, *others],
        "dependencies": [
            {"ref": "image", "dependsOn": top},
            *({"ref": ref, "dependsOn": sorted(refs)} for ref, refs in sorted(edges.items())),
        ],
    }
    name = content.digest or json.dumps(found, sort_keys=True)
    return {"serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, name)}", **found}


def _metadata(files: Mapping[str, bytes]) -> Iterator[Any]:
    for name, text in sorted(files.items()):
        if name.endswith(".dist-info/METADATA"):
            yield HeaderParser().parsestr(text.decode(errors="replace"))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _purl(metadata: Any) -> str:
    return f"pkg:pypi/{_normal(metadata['Name'])}@{quote(metadata['Version'])}"


def _python(files: Mapping[str, bytes]) -> Iterator[Json]:
    seen = set[str]()
    for metadata in _metadata(files):
        purl = _purl(metadata)
        if purl in seen:
            continue
        seen.add(purl)
        one: Json = {"type": "library", "bom-ref": purl, "name": metadata["Name"], "version": metadata["Version"]}
        if metadata["Summary"]:
            one["description"] = metadata["Summary"]
        if metadata["License-Expression"]:
            one["licenses"] = [{"expression": metadata["License-Expression"]}]
        elif named := _licenses(metadata):
            one["licenses"] = [{"license": {"name": name}} for name in named]
        yield {**one, "purl": purl}


def _licenses(metadata: Any) -> list[str]:
    """What older metadata says: the classifiers, else a license in one line."""
    classifiers = [text.split(" :: ")[-1] for text in metadata.get_all("Classifier", []) if text.startswith("License")]
    text = (metadata["License"] or "").strip()
    return classifiers or ([text] if text and "\n" not in text and len(text) < 100 else [])


def _edges(files: Mapping[str, bytes], python: Iterable[Json]) -> Iterator[tuple[str, set[str]]]:
    """What each distribution requires, extras included, of what is there."""
    there = {_normal(one["name"]): one["bom-ref"] for one in python}
    for metadata in _metadata(files):
        own = _purl(metadata)
        named = (_REQUIREMENT.match(text) for text in metadata.get_all("Requires-Dist", []))
        refs = {there[name] for found in named if found and (name := _normal(found[1])) in there}
        yield own, refs - {own}


def _debian(files: Mapping[str, bytes]) -> Iterator[Json]:
    release = _release(files)
    distribution = release.get("ID", "debian")
    named = f"&distro={quote(distribution)}-{quote(release['VERSION_ID'])}" if "VERSION_ID" in release else ""
    for name, text in sorted(files.items()):
        if not name.startswith("var/lib/dpkg/status"):
            continue
        for entry in text.decode(errors="replace").split("\n\n"):
            package = HeaderParser().parsestr(entry.lstrip("\n"))
            # `status.d` of images without dpkg has no Status.
            installed = "installed" in (package["Status"] or "install ok installed").split()[2:]
            if not package["Package"] or not package["Version"] or not installed:
                continue
            version = quote(package["Version"], safe="")
            purl = f"pkg:deb/{quote(distribution)}/{package['Package']}@{version}?arch={package['Architecture']}{named}"
            one: Json = {"type": "library", "bom-ref": purl, "name": package["Package"], "version": package["Version"]}
            yield {**one, "purl": purl}


def _release(files: Mapping[str, bytes]) -> dict[str, str]:
    text = files.get("etc/os-release") or files.get("usr/lib/os-release") or b""
    pairs = (line.partition("=") for line in text.decode(errors="replace").splitlines())
    return {key: value.strip('"') for key, _, value in pairs if value}


def _interpreters(content: Content) -> Iterator[Json]:
    """A Python below /usr/local: the official images build it from source and name its release."""
    environment = dict(entry.partition("=")[::2] for entry in (content.config.get("config") or {}).get("Env") or ())
    for name in sorted(content.files):
        if name.startswith("usr/local/bin/python"):
            version = environment.get("PYTHON_VERSION") or name.rpartition("python")[2]
            purl = f"pkg:generic/python@{quote(version)}"
            yield {"type": "application", "bom-ref": purl, "name": "python", "version": version, "purl": purl}


def main() -> int:
    """0, or 1 for what is no image."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("image", type=Path, metavar="IMAGE")
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")
    given = parser.parse_args()
    try:
        text = json.dumps(document(read(given.image)), indent=2) + "\n"
    except ImageError as error:
        print(f"error: {error}\nGive an OCI archive, a docker archive or a folder.", file=sys.stderr)
        return 1
    if given.output:
        given.output.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
