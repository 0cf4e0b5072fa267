"""The builds of vcbatch that are installed: that of this checkout, and an earlier one to upgrade from and roll back to.

The earlier one is another code base, taken from the history of the repository: its chart, and an image of its own.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.controlplane import REPOSITORY
from tests.image.build import IMAGE, image_archive, source_digest
from tests.support.caches import made_once

EARLIER = "aaff30cb78e94deeb342de913bb736ae552e9c0f"
"""The commit of the earlier build: the first one with this chart, until there is a release."""
EARLIER_IMAGE = "docker.io/library/vcbatch:earlier"


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """A chart, and an image that the nodes have."""

    name: str
    chart: Path
    image: str
    """The image's name on the nodes: `docker.io/library/vcbatch:test`."""
    archive: Path
    """The image as an OCI archive."""


def current() -> Build:
    """That of this checkout. Raises DebianError or SandboxError where its image can't be built."""
    return Build(name="this build", chart=REPOSITORY / "helm/vcbatch", image=IMAGE, archive=image_archive())


def missing() -> str:
    """Why there is no earlier build, in one line; empty where there is one."""
    if _git("cat-file", "-e", f"{EARLIER}^{{commit}}").returncode != 0:
        return f"commit {EARLIER[:8]} isn't in this checkout's history (git fetch --unshallow)"
    return ""


def earlier() -> Build:
    """The one before, where it isn't `missing`. Raises DebianError or SandboxError where its image can't be built."""
    source = made_once("earlier", EARLIER, _unpack)
    if source_digest(source) == source_digest(REPOSITORY):
        raise AssertionError(f"commit {EARLIER[:8]} is the code of this checkout: EARLIER has to be an older one")
    archive = image_archive(source, EARLIER_IMAGE)
    return Build(name="the build before", chart=source / "helm/vcbatch", image=EARLIER_IMAGE, archive=archive)


def _unpack(folder: Path) -> None:
    done = _git("archive", "--format=tar", EARLIER)
    assert done.returncode == 0, f"git archive: {done.stderr.decode()}"
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as packed:
        packed.extractall(folder, filter="fully_trusted")


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    # The checkout may be somebody else's, e.g. a volume of a container.
    command = ["git", "-c", f"safe.directory={REPOSITORY}", "-C", str(REPOSITORY), *arguments]
    return subprocess.run(command, capture_output=True, check=False)
