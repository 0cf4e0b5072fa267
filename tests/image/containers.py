"""The image that `image_archive` gives, and containers of it with the rights that a restricted pod has."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.cluster.processes import Guard, Program, wait_until
from tests.image.build import IMAGE, image_archive, missing, tools
from tests.image.sandbox import PATH, Bind, sandboxed
from tests.support.caches import made_once

__all__ = ["IMAGE", "Container", "Image", "container", "image_archive", "missing"]

Json = dict[str, Any]
UID = 10001
_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"

# The root is an overlay, as a container runtime's: mount points can be made in it, and what isn't the interpreter can
# be taken away. Then nothing is run that the image may lack.
_RUN = """
set -e
mount -t tmpfs tmpfs /sys/fs/cgroup  # crun looks there though it is to use none
mkdir -p /run/over/upper /run/over/work /bundle/rootfs
mount -t overlay -o lowerdir=/image,upperdir=/run/over/upper,workdir=/run/over/work overlay /bundle/rootfs
for file in /bundle/rootfs/usr/bin/* /bundle/rootfs/usr/sbin/*; do
    case $file in */python3*) ;; *) rm -rf "$file" ;; esac
done
exec crun --cgroup-manager=disabled run --bundle /bundle vcbatch
"""


@dataclass(frozen=True, slots=True)
class Image:
    """An OCI archive of one image."""

    archive: Path

    @contextmanager
    def _open(self) -> Iterator[tuple[tarfile.TarFile, Json]]:
        with tarfile.open(self.archive) as packed:
            (entry,) = json.loads(_member(packed, "index.json").read())["manifests"]
            yield packed, json.loads(_blob(packed, entry["digest"]).read())

    def config(self) -> Json:
        """The `config` of the image: user, entry point, environment, labels."""
        with self._open() as (packed, manifest):
            return dict(json.loads(_blob(packed, manifest["config"]["digest"]).read())["config"])

    def layers(self) -> list[int]:
        """Bytes that the files of each layer take where it is unpacked."""
        with self._open() as (packed, manifest):
            sizes: list[int] = []
            for layer in manifest["layers"]:
                with tarfile.open(fileobj=_blob(packed, layer["digest"])) as files:
                    sizes.append(sum(file.size for file in files))
            return sizes

    def root(self) -> Path:
        """The image's root file system, unpacked once per machine."""
        return made_once("image-root", self.archive.parent.name, self._unpack) / "root"

    def _unpack(self, folder: Path) -> None:
        root = folder / "root"
        root.mkdir()
        with self._open() as (packed, manifest):
            for layer in manifest["layers"]:
                with tarfile.open(fileobj=_blob(packed, layer["digest"])) as files:
                    for file in files:
                        _lay(files, file, root)


def _member(packed: tarfile.TarFile, name: str) -> IO[bytes]:
    found = packed.extractfile(name)
    assert found is not None
    return found


def _blob(packed: tarfile.TarFile, digest: str) -> IO[bytes]:
    return _member(packed, f"blobs/{digest.replace(':', '/')}")


def _lay(files: tarfile.TarFile, file: tarfile.TarInfo, root: Path) -> None:
    path = root / file.name
    if path.name == _OPAQUE:
        for each in path.parent.iterdir():
            _remove(each)
    elif path.name.startswith(_WHITEOUT):
        _remove(path.with_name(path.name.removeprefix(_WHITEOUT)))
    else:
        if not file.isdir():
            _remove(path)
        files.extract(file, root, filter="fully_trusted")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


class Container:
    """One running container of the image."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def process(self) -> int:
        """Process 1 of the container, by its number on this machine; 0 while there is none."""
        for pid in _descendants(self.program.pid):
            with contextlib.suppress(OSError):
                status = Path(f"/proc/{pid}/status").read_text()
                numbers = next(line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:"))
                # One number for each of: this machine, the sandbox, the container.
                if len(numbers) == 3 and numbers[-1] == "1" and status.splitlines()[0].split()[1] != "crun":
                    return pid
        return 0

    def children(self) -> list[int]:
        """All that process 1 has started."""
        return _descendants(self.process())

    def wait_started(self) -> int:
        """Process 1, once it is the image's program."""

        def started() -> bool:
            self.program.check()
            return bool(self.process())

        wait_until(f"{self.program.name} has started", started)
        return self.process()

    def end(self, number: signal.Signals) -> int:
        """The exit status after that signal to process 1."""
        os.kill(self.process(), number)
        return self.program.wait_ended()


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *_descendants(child)]
    return found


@contextmanager
def container(
    image: Image,
    arguments: Sequence[str],
    *,
    log: Path,
    guard: Guard,
    env: Mapping[str, str] | None = None,
    mounts: Mapping[str, Path] | None = None,
) -> Iterator[Container]:
    """Run the image's entry point with `arguments`: root read-only but for /tmp, no capabilities, no new privileges,
    the network of this machine. `mounts` are folders by where they are seen. Nothing of it is left afterwards."""
    bundle = log.parent / f"{log.stem}-bundle"
    bundle.mkdir()
    inside = {f"/mounted/{number}": at for number, at in enumerate(mounts or ())}
    spec = _spec(image.config(), arguments, env or {}, inside)
    (bundle / "config.json").write_text(json.dumps(spec), encoding="utf-8")
    binds = [
        Bind(image.root(), "/image"),
        Bind(bundle / "config.json", "/bundle/config.json"),
        *(Bind(source, at) for source, at in zip((mounts or {}).values(), inside, strict=True)),
    ]
    with sandboxed(tools(), ["bash", "-c", _RUN], binds=binds, network=True) as line:
        program = Program(log.stem, line, log=log, guard=guard, env={"PATH": PATH, "LC_ALL": "C"})
        program.start()
        try:
            yield Container(program)
        finally:
            program.kill()


def _spec(config: Json, arguments: Sequence[str], env: Mapping[str, str], mounts: Mapping[str, str]) -> Json:
    user, _, group = config["User"].partition(":")
    given = {**dict(entry.split("=", 1) for entry in config["Env"]), **env}
    return {
        "ociVersion": "1.0.2",
        "process": {
            "args": [*config["Entrypoint"], *arguments],
            "cwd": config.get("WorkingDir") or "/",
            "env": [f"{key}={value}" for key, value in given.items()],
            "user": {"uid": int(user), "gid": int(group)},
            "capabilities": {kind: [] for kind in ("bounding", "effective", "inheritable", "permitted", "ambient")},
            "noNewPrivileges": True,
        },
        "root": {"path": "rootfs", "readonly": True},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["nosuid", "nodev", "mode=1777"]},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]},
            *(
                {"destination": at, "type": "bind", "source": source, "options": ["rbind", "ro"]}
                for source, at in mounts.items()
            ),
        ],
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount")]},
    }
