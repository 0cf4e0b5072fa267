"""Write images as OCI archives, with the standard library alone.

The form is the image layout of the OCI image specification, in a tar file, with the two annotations by which containerd
and buildah learn an image's name.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, Any

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_TYPE = "application/vnd.oci.image"

Layer = Callable[[tarfile.TarFile], None]
"""Adds what the layer consists of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One image of an archive: its full name (`docker.io/library/busybox:1.37`), its layers and its configuration."""

    name: str
    layers: Sequence[Layer]
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """`Cmd`, `Entrypoint`, `Env`, `User` and the like."""


def files(entries: Mapping[str, bytes | str | None], *, modes: Mapping[str, int] | None = None) -> Layer:
    """A layer of files given by their contents, links given by their target, and folders given by None."""
    special = modes or {}

    def add(archive: tarfile.TarFile) -> None:
        for path, what in entries.items():
            entry = tarfile.TarInfo(path)
            entry.mode = 0o755
            if what is None:
                entry.type = tarfile.DIRTYPE
                entry.mode = 0o1777 if path.endswith("tmp") else 0o755
                archive.addfile(entry)
            elif isinstance(what, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, what
                archive.addfile(entry)
            else:
                entry.size, entry.mode = len(what), special.get(path, 0o644)
                archive.addfile(entry, io.BytesIO(what))

    return add


def folder(root: Path, *, without: Sequence[str] = ()) -> Layer:
    """A layer of all below a folder, but for the paths that match a pattern of `without` and what is below those."""

    def add(archive: tarfile.TarFile) -> None:
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root).as_posix()
            if any(fnmatch(name, pattern) or fnmatch(name, f"{pattern}/*") for pattern in without):
                continue
            entry = archive.gettarinfo(path, arcname=name)
            if entry is None:
                continue  # a socket
            entry.mtime = 0
            if entry.isfile():
                with path.open("rb") as file:
                    archive.addfile(entry, file)
            else:
                archive.addfile(entry)

    return add


def write(path: Path, *images: Image) -> Path:
    """Write an archive of these images; it appears under its name when it is whole."""
    with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=path.parent) as scratch:
        blobs = _Blobs(Path(scratch))
        manifests = [_manifest(image, blobs) for image in images]
        index = {"schemaVersion": 2, "mediaType": f"{_TYPE}.index.v1+json", "manifests": manifests}
        unfinished = Path(scratch) / "archive.tar"
        with tarfile.open(unfinished, "w") as archive:
            _add(archive, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
            _add(archive, "index.json", json.dumps(index).encode())
            for digest in blobs.digests:
                archive.add(blobs.file(digest), f"blobs/sha256/{digest}", filter=_anonymous)
        unfinished.rename(path)
    return path


class _Blobs:
    """Blobs by their digests, as files of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.digests: dict[str, None] = {}

    def file(self, digest: str) -> Path:
        return self._folder / digest

    def add(self, write: Callable[[IO[bytes]], None]) -> dict[str, Any]:
        """The descriptor of what `write` writes."""
        path = self._folder / "blob"
        with path.open("wb+") as file:
            write(file)
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        path.rename(self.file(digest))
        self.digests[digest] = None
        return {"digest": f"sha256:{digest}", "size": self.file(digest).stat().st_size}

    def add_json(self, value: object) -> dict[str, Any]:
        return self.add(lambda file: file.write(json.dumps(value).encode()))


def _manifest(image: Image, blobs: _Blobs) -> dict[str, Any]:
    layers = [{"mediaType": f"{_TYPE}.layer.v1.tar", **blobs.add(_tar(layer))} for layer in image.layers]
    configuration = {
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": image.config,
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"] for layer in layers]},
        # buildah refuses to build on an image whose history says nothing of its layers.
        "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "vcbatch tests"} for _ in layers],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_TYPE}.manifest.v1+json",
        "config": {"mediaType": f"{_TYPE}.config.v1+json", **blobs.add_json(configuration)},
        "layers": layers,
    }
    names = {"io.containerd.image.name": image.name, "org.opencontainers.image.ref.name": image.name}
    return {"mediaType": f"{_TYPE}.manifest.v1+json", **blobs.add_json(manifest), "annotations": names}


def _tar(layer: Layer) -> Callable[[IO[bytes]], None]:
    def write(file: IO[bytes]) -> None:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
            layer(archive)

    return write


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.mtime = 0
    return entry
