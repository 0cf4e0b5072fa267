"""Build the image from the Dockerfile with Debian's buildah, on a base of Debian's packages, without a network.

As a command, `python -m tests.image.build`, it prints the file of the image.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tomllib
from pathlib import Path

from image.requirements import requirements
from tests.image import base, sandbox
from tests.image.sandbox import Bind
from tests.support import debian
from tests.support.caches import alone, cache, digest, made_once, tree_digest

REPOSITORY = base.REPOSITORY
DOCKERFILE = REPOSITORY / "Dockerfile"
IMAGE = "docker.io/library/vcbatch:test"
"""What the image is called in its archive."""
LABELS = {
    "VERSION": "0.0.0-test",
    "REVISION": "0" * 40,
    "SOURCE": "https://vcbatch.invalid/source",
    "CREATED": "1970-01-01T00:00:00Z",
}
"""The build arguments that end in labels."""
ARCHIVE = "vcbatch.tar"
_TOOLS = ("buildah", "netavark", "crun", "bash", "coreutils", "mount", "sed")
_FORMAT = "1"
"""Changes when images are built in another way."""
_STORE_BYTES = 3 << 30
"""buildah's store of layers starts afresh when it is larger."""
_BACKEND = ("hatchling",)

_SCRIPT = """
set -e
export TMPDIR=/var/tmp
buildah() { command buildah --root /store/root --runroot /run/store --storage-driver overlay "$@"; }
base=localhost/base:$BASE_KEY
if ! buildah inspect --type image "$base" > /dev/null 2>&1; then
    made=$(buildah from scratch)
    buildah copy --quiet "$made" /base / > /dev/null
    buildah config --env PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin --cmd python3 "$made"
    buildah commit --quiet --rm "$made" "$base" > /dev/null
fi
buildah tag "$base" "$BASE_NAME"
# The limits of this process: buildah would raise them, which takes a capability that root may lack.
limits="--ulimit nofile=$(ulimit -Sn):$(ulimit -Hn) --ulimit nproc=$(ulimit -Su):$(ulimit -Hu)"
limits=$(echo "$limits" | sed s/unlimited/-1/g)
buildah build --isolation chroot --network host --pull-never --layers $limits --file /context/Dockerfile \
    --volume /wheels:/srv:ro --build-arg PIP_NO_INDEX=1 --build-arg PIP_FIND_LINKS=/srv \
    "$@" --tag "$IMAGE" /context
buildah push --quiet --disable-compression "$IMAGE" "oci-archive:/out/$ARCHIVE:$IMAGE"
"""


def tools() -> Path:
    """A root file system with the programs that build and run images."""
    return debian.root("tools", _TOOLS)


def missing() -> str:
    """What this machine lacks to build and run the image; empty where it has all."""
    if os.geteuid() != 0:
        return "root (images are built and run in namespaces)"
    return debian.missing() or sandbox.missing()


def extras(dockerfile: str) -> list[str]:
    """The extras that the Dockerfile installs unless another choice is made."""
    found = re.search(r"^ARG EXTRAS=(\S*)$", dockerfile, re.MULTILINE)
    if found is None:
        raise ValueError("the Dockerfile has no ARG EXTRAS")
    return [name for name in found[1].split(",") if name]


def context(dockerignore: str) -> list[str]:
    """What the build is given, by the exceptions of .dockerignore."""
    return [line[1:] for line in dockerignore.splitlines() if line.startswith("!")]


def image_archive(source: Path = REPOSITORY, name: str = IMAGE) -> Path:
    """The image of this checkout, or of the sources in another folder, as an OCI archive that calls it `name`. It is
    built where its sources have changed.

    Raises `DebianError` or `SandboxError` where that fails.
    """
    dockerfile = (source / DOCKERFILE.name).read_text(encoding="utf-8")
    constraints = (source / "constraints.txt").read_bytes()
    project = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wheels = base.wheels([*requirements(project, extras(dockerfile)), *_BACKEND], constraints)
    key = digest([_FORMAT, name, base.root().parent.name, tools().parent.name, wheels.name, source_digest(source)])
    return made_once("image", key, lambda folder: _build(folder, wheels, source, name)) / ARCHIVE


def source_digest(source: Path) -> str:
    """A digest of all that the image of these sources is built from."""
    names = context((source / ".dockerignore").read_text(encoding="utf-8"))
    return tree_digest(source, [DOCKERFILE.name, ".dockerignore", *names])


def _build(out: Path, wheels: Path, source: Path, name: str) -> None:
    root = base.root()
    store = cache() / "image-store"
    with alone("image-store"):
        if _size(store) > _STORE_BYTES:
            shutil.rmtree(store)
        store.mkdir(exist_ok=True)
        given = [f"--build-arg={label}={value}" for label, value in LABELS.items()]
        sandbox.run(
            tools(),
            ["bash", "-c", _SCRIPT, "build", *given],
            binds=[
                Bind(store, "/store", writable=True),
                Bind(out, "/out", writable=True),
                Bind(root, "/base"),
                Bind(wheels, "/wheels"),
                Bind(source, "/context"),
            ],
            env={"BASE_KEY": root.parent.name, "BASE_NAME": base.NAME, "IMAGE": name, "ARCHIVE": ARCHIVE},
        )


def _size(folder: Path) -> int:
    return sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink())


def main() -> int:
    """Print the file of the image; 1 where it can't be built."""
    reason = missing()
    try:
        if reason:
            raise sandbox.SandboxError(f"missing: {reason}")
        print(image_archive())
    except (debian.DebianError, sandbox.SandboxError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
