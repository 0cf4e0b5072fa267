"""The environments of submitting shells, which may contain secrets: files in the state directory of a local server.

The commands that submit jobs write them; objects have only their ids. A file belongs to the first job that has its id,
which alone is known to the submitter until then, and is removed with that job. A pod gets it only if that job controls
the pod, so that copying the id into another object gives nothing.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vcbatch.local.files import replace_file

_ID: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
_LARGEST_BYTES: Final = 4 * 1024 * 1024
"""The kernel accepts less than this as an environment."""
_UNCLAIMED_SECONDS: Final = 600.0
"""How long a file may wait for the job that is being created."""


class EnvironmentRefusedError(Exception):
    """A pod doesn't get the environment that it names; the text has the reason and doesn't reveal the content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedEnvironment:
    """The environment of a shell. `complete` is True where it replaces the variables that containers inherit from the
    server, False where it adds to them."""

    variables: Mapping[str, str]
    umask: int = 0o022
    complete: bool = True


class Environments:
    """The files of one state directory: `directory` has mode 0700, and each file in it 0600."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @classmethod
    def of(cls, state_dir: Path) -> Environments:
        """The environments of a state directory."""
        return cls(state_dir / "environments")

    def write(self, environment: SubmittedEnvironment, *, namespace: str) -> str:
        """Store an environment for a job that is created in this namespace next; returns its id. Raises `OSError`,
        above all where the state directory belongs to another user or others may write to it."""
        _require_private(self._directory.parent)
        with suppress(FileExistsError):
            self._directory.mkdir(mode=0o700)
        _require_private(self._directory)
        number = os.urandom(16).hex()
        document = {
            "namespace": namespace,
            "job": "",
            "umask": environment.umask,
            "complete": environment.complete,
            "variables": dict(environment.variables),
        }
        content = json.dumps(document).encode()
        if len(content) > _LARGEST_BYTES:
            raise OSError(errno.E2BIG, f"the environment has {len(content)} bytes")
        replace_file(self._directory / number, content, durable=False)
        return number

    def read(self, number: str, *, namespace: str, job: str) -> SubmittedEnvironment:
        """The environment with this id, for a pod that the job with the UID `job` controls. Raises
        `EnvironmentRefusedError`."""
        document = self._document(number)
        if document is None:
            raise EnvironmentRefusedError(
                "the environment that the job was submitted with doesn't exist (any more); submit the program again"
            )
        if not document["job"]:
            raise EnvironmentRefusedError("the environment of the submitting shell has no job yet")
        if (document["namespace"], document["job"]) != (namespace, job):
            raise EnvironmentRefusedError("the environment of the submitting shell belongs to another job")
        return SubmittedEnvironment(
            variables=document["variables"], umask=document["umask"], complete=document["complete"]
        )

    def claim(self, number: str, *, namespace: str, job: str) -> None:
        """Record the owner of an environment: the first job of its namespace that has its id. Without effect for every
        later one. Raises `OSError` where that can't be written."""
        document = self._document(number)
        if document is not None and not document["job"] and document["namespace"] == namespace:
            document["job"] = job
            replace_file(self._directory / number, json.dumps(document).encode())

    def release(self, number: str, *, job: str) -> None:
        """Remove an environment whose owner was deleted; of another job it stays."""
        document = self._document(number)
        if document is not None and document["job"] == job:
            self.remove(number)

    def remove(self, number: str) -> None:
        """Remove an environment, for which no job was created."""
        if _ID.fullmatch(number):
            with suppress(OSError):
                (self._directory / number).unlink()

    def retain(self, jobs: Collection[str]) -> None:
        """Remove the environments of all jobs but those with these UIDs, and those that have waited for a job too
        long: their submission was interrupted."""
        with suppress(OSError):
            for path in list(self._directory.iterdir()):
                document = self._document(path.name)
                with suppress(OSError):
                    old = time.time() - path.lstat().st_mtime > _UNCLAIMED_SECONDS
                    owner = document["job"] if document is not None else ""
                    if old if not owner else owner not in jobs:
                        path.unlink()

    def _document(self, number: str) -> dict | None:
        """The content of a file; None where there is none, or one that this user alone couldn't have written."""
        if not _ID.fullmatch(number):
            return None
        try:
            directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            descriptor = os.open(number, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
        except OSError:
            return None
        finally:
            os.close(directory)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
                return None
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return _checked(json.loads(file.read(_LARGEST_BYTES + 4096)))
        except (OSError, ValueError):
            return None
        finally:
            os.close(descriptor)


def _checked(document: dict) -> dict:
    """The document of a file. Raises `ValueError` for another one."""
    try:
        variables = document["variables"]
        whole = (
            isinstance(document["namespace"], str)
            and isinstance(document["job"], str)
            and isinstance(document["umask"], int)
            and 0 <= document["umask"] <= 0o777
            and isinstance(document["complete"], bool)
            and all(isinstance(value, str) for pair in variables.items() for value in pair)
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("not an environment") from error
    if not whole:
        raise ValueError("not an environment")
    return document


def _require_private(directory: Path) -> None:
    """Raises `OSError` unless the directory is one of this user, to which no other user can write."""
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise PermissionError(errno.EPERM, "not a directory of this user alone", str(directory))
