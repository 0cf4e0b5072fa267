"""Gives a container its own view of the file system: every mount at its real path, without changes to the host's tree.

A mount point that doesn't exist on the host has to be created where the host doesn't see it: on an overlay over the
nearest existing directory, or, where the kernel refuses that, on a tmpfs in which every entry of that directory is
bound again. The root itself is always rebuilt in the second way. (bubblewrap and rootless container engines use both
ways.)
"""

from __future__ import annotations

import fnmatch
import os
import stat

from . import syscalls as sys_

MAX_MIRRORED_ENTRIES = 4096
# Terminals, disks and loop devices: many, and not needed by batch programs.
_DEV_SKIPPED = ("tty[0-9S]*", "vcs*", "loop*", "ram*", "sd*", "vd*", "nvme*", "dm-*", "hd*", "sr*")
_FLAG_BITS = (
    (1, sys_.MS_RDONLY),
    (2, sys_.MS_NOSUID),
    (4, sys_.MS_NODEV),
    (8, sys_.MS_NOEXEC),
    (1024, sys_.MS_NOATIME),
    (2048, sys_.MS_NODIRATIME),
    (4096, sys_.MS_RELATIME),
)


class MountError(Exception):
    """A mount can't be made; the text has the path and the kernel's error."""


class View:
    """The file system of a container, while it is being assembled.

    `scratch` is an empty directory for this container only. Call `add` for every mount, then `enter` once.
    """

    def __init__(self, scratch: str) -> None:
        self._scratch = scratch
        self._root = ""  # where the new root is being built; "" while the host's own root is used
        self._ours: set[str] = set()  # directories (container paths) in which we may create entries
        self._volumes: list[str] = []  # and those in which we may do so at any depth
        self._count = 0
        sys_.mount(source="none", target="/", flags=sys_.MS_REC | sys_.MS_PRIVATE)

    def prepare(self, targets: list[str]) -> None:
        """Decide first whether the root must be rebuilt: every later mount then goes into the new one."""
        for target in targets:
            top = "/" + target.strip("/").split("/", 1)[0]
            if not os.path.lexists(top):
                self._rebuild_root()
                return

    def add(self, *, source_fd: int, target: str, read_only: bool) -> None:
        """Bind the file or directory of `source_fd` (opened with O_PATH before any mount was made) at `target`."""
        where = self._resolve(target)
        is_directory = stat.S_ISDIR(os.fstat(source_fd).st_mode)
        try:
            self._make_mount_point(where, is_directory)
            host_path = self._root + where
            sys_.mount(source=f"/proc/self/fd/{source_fd}", target=host_path, flags=sys_.MS_BIND | sys_.MS_REC)
            if read_only:
                _remount_read_only(host_path)
        except OSError as error:
            raise MountError(f"{target}: {error.strerror or error}") from error
        if is_directory:
            self._volumes.append(where)

    def enter(self, *, new_proc: bool) -> None:
        """Make this the file system of the calling process."""
        if new_proc:
            flags = sys_.MS_NOSUID | sys_.MS_NODEV | sys_.MS_NOEXEC
            sys_.mount(source="proc", target=f"{self._root}/proc", kind="proc", flags=flags)
        if not self._root:
            return
        os.chdir(self._root)
        sys_.pivot_root(".", ".")
        sys_.umount(".", sys_.MNT_DETACH)
        os.chdir("/")

    def _make_mount_point(self, where: str, is_directory: bool) -> None:
        if os.path.lexists(self._root + where):
            exists_as_directory = os.path.isdir(self._root + where)
            if exists_as_directory != is_directory:
                kinds = ("a directory", "a file") if exists_as_directory else ("a file", "a directory")
                raise MountError(f"{where}: {kinds[0]} is there, but {kinds[1]} is to be mounted")
            return
        ancestor = os.path.dirname(where)
        while not os.path.isdir(self._root + ancestor):
            ancestor = os.path.dirname(ancestor)
        if not self._is_ours(ancestor):
            self._make_ours(ancestor)
        parts = where[len(ancestor) :].strip("/").split("/")
        for part in parts[:-1]:
            ancestor = os.path.join(ancestor, part)
            os.mkdir(self._root + ancestor, 0o755)
            self._ours.add(ancestor)
        if is_directory:
            os.mkdir(self._root + where, 0o755)
        else:
            os.close(os.open(self._root + where, os.O_CREAT | os.O_WRONLY, 0o644))

    def _is_ours(self, directory: str) -> bool:
        # Below a volume too: an entry created there belongs to the volume, as in Kubernetes.
        if directory in self._ours:
            return True
        return any(directory == volume or directory.startswith(volume + "/") for volume in self._volumes)

    def _make_ours(self, directory: str) -> None:
        """Cover `directory` so that entries can be created in it without the host seeing them."""
        # An overlay would hide mounts below the directory.
        if directory != "/dev" and not self._has_submounts(directory) and self._overlay(directory):
            self._volumes.append(directory)
            return
        self._mirror(directory)
        self._ours.add(directory)

    def _has_submounts(self, directory: str) -> bool:
        below = self._root + directory + "/"
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            return any(line.split(" ", 5)[4].startswith(below) for line in file)

    def _overlay(self, directory: str) -> bool:
        self._count += 1
        upper = f"{self._scratch}/overlay{self._count}"
        work = f"{upper}.work"
        os.mkdir(upper, 0o755)
        os.mkdir(work, 0o700)
        target = self._root + directory
        options = f"userxattr,lowerdir={_escape(target)},upperdir={_escape(upper)},workdir={_escape(work)}"
        try:
            sys_.mount(source="overlay", target=target, kind="overlay", data=options)
        except OSError:
            return False
        return True

    def _mirror(self, directory: str) -> None:
        staging = self._stage(directory)
        sys_.mount(source=staging, target=self._root + directory, flags=sys_.MS_BIND | sys_.MS_REC)

    def _rebuild_root(self) -> None:
        self._root = self._stage("/")
        self._ours.add("/")

    def _stage(self, directory: str) -> str:
        """A tmpfs in the scratch directory whose entries are those of `directory`."""
        self._count += 1
        staging = f"{self._scratch}/mirror{self._count}"
        os.mkdir(staging, 0o755)
        origin = self._root + directory
        entries = os.listdir(origin)
        if len(entries) > MAX_MIRRORED_ENTRIES:
            raise MountError(
                f"{directory}: has {len(entries)} entries, and at most {MAX_MIRRORED_ENTRIES} can be covered to make"
                " a mount point in it; create the mount path on the host"
            )
        sys_.mount(source="tmpfs", target=staging, kind="tmpfs", flags=sys_.MS_NOSUID, data="mode=755")
        sys_.mount(source="none", target=staging, flags=sys_.MS_UNBINDABLE if directory == "/" else sys_.MS_PRIVATE)
        for entry in entries:
            if directory == "/dev" and any(fnmatch.fnmatchcase(entry, skipped) for skipped in _DEV_SKIPPED):
                continue
            _mirror_entry(os.path.join(origin, entry), os.path.join(staging, entry))
        return staging

    def _resolve(self, target: str) -> str:
        """`target` with the symbolic links of the view resolved inside the view."""
        resolved = ""
        pending = [part for part in target.split("/") if part not in ("", ".")]
        links = 0
        while pending:
            part = pending.pop(0)
            if part == "..":
                resolved = os.path.dirname(resolved)
                continue
            candidate = f"{resolved}/{part}"
            if not os.path.islink(self._root + candidate):
                resolved = candidate
                continue
            links += 1
            if links > 40:
                raise MountError(f"{target}: too many symbolic links")
            destination = os.readlink(self._root + candidate)
            if destination.startswith("/"):
                resolved = ""
            pending = [p for p in destination.split("/") if p not in ("", ".")] + pending
        return resolved or "/"


def _mirror_entry(origin: str, copy: str) -> None:
    try:
        mode = os.lstat(origin).st_mode
        if stat.S_ISLNK(mode):
            os.symlink(os.readlink(origin), copy)
            return
        if stat.S_ISDIR(mode):
            os.mkdir(copy, 0o755)
        else:
            os.close(os.open(copy, os.O_CREAT | os.O_WRONLY, 0o644))
        sys_.mount(source=origin, target=copy, flags=sys_.MS_BIND | sys_.MS_REC)
    except OSError:
        # An entry that was removed meanwhile or that can't be bound is left out.
        return


def _remount_read_only(path: str) -> None:
    # Flags of the underlying mount are locked in a user namespace and have to be repeated.
    present = os.statvfs(path).f_flag
    flags = sys_.MS_REMOUNT | sys_.MS_BIND | sys_.MS_RDONLY
    for bit, flag in _FLAG_BITS:
        if present & bit:
            flags |= flag
    sys_.mount(source="none", target=path, flags=flags)


def _escape(path: str) -> str:
    return path.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")
