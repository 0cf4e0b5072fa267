"""Volumes without mounts: a symbolic link at the mount path, where the path is free and may be created."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vcbatch.interfaces.processes import BindMount
from vcbatch.local.kubelet.environment import ConfigError

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A symbolic link that was created for a pod."""

    path: str
    target: str


def place(mounts: Sequence[BindMount], *, mode: str) -> list[Link]:
    """Make every mount available at its path, and return the links that were created for it; raises `ConfigError` where
    a path exists already, or isn't allowed."""
    made: list[Link] = []
    try:
        for mount in mounts:
            link = _place(mount, mode)
            if link is not None:
                made.append(link)
    except ConfigError:
        remove(made)
        raise
    return made


def remove(links: Sequence[Link]) -> None:
    """Remove links, if they still are what was created."""
    for link in links:
        path = Path(link.path)
        if path.is_symlink() and str(path.readlink()) == link.target:
            path.unlink(missing_ok=True)


def _place(mount: BindMount, mode: str) -> Link | None:
    path = Path(mount.target)
    if path == _SHARED_MEMORY and path.is_dir():
        return None  # the machine's own shared memory is used
    if path.is_symlink() or path.exists():
        if path.exists() and path.resolve() == mount.source.resolve():
            return None
        raise ConfigError(
            f"mountPath {mount.target}: exists on this machine, and mode {mode} can't mount over it;"
            " use another mountPath, or a machine that allows user namespaces"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(mount.source)
    except OSError as error:
        raise ConfigError(
            f"mountPath {mount.target}: {error.strerror}; mode {mode} needs a mountPath that this user may create"
        ) from error
    return Link(path=mount.target, target=str(mount.source))
