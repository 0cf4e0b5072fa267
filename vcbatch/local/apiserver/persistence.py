"""The state on disk: one SQLite database in WAL mode, written in one transaction per group of requests.

A committed transaction survives a crash of the process (the operating system has the pages); a power loss may lose the
last writes, never consistency. Checkpoints, which wait for the disk, run in another thread.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from vcbatch.local.apiserver.losses import Loss, NewestVersion, add_loss, read_losses
from vcbatch.local.apiserver.reserve import Reserve, free_bytes

SCHEMA_VERSION = 1
_CHECKPOINT_BYTES = 4 * 1024 * 1024
_RECLAIM_PAGES, _RECLAIM_STEPS = 256, 8  # 8 MiB, a commit for each


class StateError(Exception):
    """The state directory can't be used: another server uses it, or a newer version wrote it."""


class WriteFailed(Exception):
    """A group of writes wasn't written to the disk, not even in part. `full`: for lack of space."""

    def __init__(self, message: str, *, full: bool) -> None:
        super().__init__(message)
        self.full = full


@dataclass(frozen=True, slots=True)
class StoredObject:
    """A row: `collection` is `GROUP/PLURAL`; `body` the object's JSON, resourceVersion included."""

    collection: str
    namespace: str
    name: str
    version: int
    body: bytes | None
    """None deletes the row."""
    deleting: bool = False
    """Whether the object is being deleted, and is removed once it has no finalizers and no dependents."""

    @property
    def frees_space(self) -> bool:
        return self.body is None or self.deleting


class Persistence:
    """The database of one state directory. Not thread-safe except for `checkpoint`.

    `known_version` is a resourceVersion that is known to have been committed, for example by a pod that runs. Raises
    `StateError`, and `OSError` where the directory isn't writable."""

    def __init__(self, directory: Path, *, known_version: int = 0) -> None:
        self._directory = directory
        self._path = directory / "state.db"
        self._reserve = Reserve(directory)
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = self._acquire()
        try:
            self._newest = NewestVersion(directory)
            try:
                self._database = self._open()
                try:
                    self.losses = self._notice_loss(max(known_version, self._newest.known))
                except BaseException:
                    self._database.close()
                    raise
            except BaseException:
                self._newest.close()
                raise
        except BaseException:
            self._lock.close()
            raise
        self._reserve.take()
        (self._secure_delete,) = self._database.execute("PRAGMA secure_delete").fetchone()

    def _acquire(self) -> IO[str]:
        lock = (self._directory / "lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise StateError(f"the state directory {self._directory} is in use by another server") from None
        return lock

    def _open(self) -> sqlite3.Connection:
        created = not self._path.exists() or not self._path.stat().st_size
        if created:
            self._set_log_aside()
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            if created:
                database.execute("PRAGMA auto_vacuum=INCREMENTAL")
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=NORMAL")
            database.execute("PRAGMA wal_autocheckpoint=0")
            self._prepare(database)
        except sqlite3.DatabaseError as error:
            database.close()
            raise StateError(f"the state in {self._path} can't be read: {error}") from error
        except BaseException:
            database.close()
            raise
        return database

    def _set_log_aside(self) -> None:
        """Rename a log without a database, which SQLite would delete: it may be all that is left of the data."""
        log = self._path.with_name(f"{self._path.name}-wal")
        with suppress(FileNotFoundError):
            if log.stat().st_size:
                log.rename(log.with_name(f"{log.name}.orphan"))

    def _notice_loss(self, known: int) -> Sequence[Loss]:
        """Compare the newest version in the database with the newest known one; returns the losses."""
        self._version = self._read_version()
        if known <= self._version:
            self._newest.note(self._version)
            return read_losses(self._directory)
        losses = add_loss(self._directory, Loss(after=self._version, through=known))
        # No resourceVersion is reused: clients that have seen lost ones get an answer that they are gone.
        self._version = known
        self._newest.note(known)
        return losses

    def _prepare(self, database: sqlite3.Connection) -> None:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA_VERSION:
            raise StateError(
                f"the state directory {self._directory} was written by a newer version of vcbatch (format {version}; "
                f"this one reads up to {SCHEMA_VERSION}): use that version, or another --state-dir"
            )
        if version == SCHEMA_VERSION:
            return
        database.execute("BEGIN IMMEDIATE")
        database.execute(
            "CREATE TABLE objects (collection TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, "
            "version INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (collection, namespace, name))"
        )
        database.execute("CREATE TABLE counter (only INTEGER PRIMARY KEY CHECK (only = 1), version INTEGER NOT NULL)")
        database.execute("INSERT INTO counter VALUES (1, 1)")
        database.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        database.execute("COMMIT")

    def version(self) -> int:
        """The newest resourceVersion that was ever committed."""
        return self._version

    def _read_version(self) -> int:
        """The newest resourceVersion in the database. Raises `StateError`."""
        try:
            (version,) = self._database.execute("SELECT version FROM counter").fetchone()
        except (sqlite3.DatabaseError, TypeError) as error:
            raise self.damaged(error) from error
        return int(version)

    def load(self) -> Iterator[StoredObject]:
        """All stored objects. Raises `StateError` where the database is damaged."""
        try:
            rows = self._database.execute("SELECT collection, namespace, name, version, body FROM objects")
            for row in rows:
                yield StoredObject(*row)
        except sqlite3.DatabaseError as error:
            raise self.damaged(error) from error

    def damaged(self, error: object) -> StateError:
        """The error for a database that opens and has invalid content."""
        return StateError(
            f"the state in {self._path} is damaged ({error}): restore the file from a copy, or start on another "
            "--state-dir"
        )

    def write(self, objects: Iterable[StoredObject], version: int) -> None:
        """Commit all or nothing; raises `WriteFailed`. `version` is the newest assigned resourceVersion. Where the disk
        is full, a group with a deletion may use the space that is reserved for deletions."""
        rows = list(objects)
        deletes = any(row.frees_space for row in rows)
        if self._reserve.given_up and not deletes and not self._take_reserve():
            raise WriteFailed("what is left is kept for deletions", full=True)
        remedies = [self._use_reserve, self._fold_in] if deletes else []
        while True:
            try:
                self._commit(rows, version)
            except WriteFailed as error:
                if not error.full or not _try_in_turn(remedies):
                    raise
            else:
                break
        self._version = version
        self._newest.note(version)

    def _commit(self, rows: Sequence[StoredObject], version: int) -> None:
        try:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany(
                "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)",
                [(r.collection, r.namespace, r.name, r.version, r.body) for r in rows if r.body is not None],
            )
            self._database.executemany(
                "DELETE FROM objects WHERE collection = ? AND namespace = ? AND name = ?",
                [(r.collection, r.namespace, r.name) for r in rows if r.body is None],
            )
            self._database.execute("UPDATE counter SET version = ?", (version,))
            self._database.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            with suppress(sqlite3.Error):
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
            raise WriteFailed(str(error), full=self._is_for_space(error)) from error

    def _is_for_space(self, error: Exception) -> bool:
        """Whether the disk is full. SQLite detects that, but reports a used-up quota and a full shared memory as an
        ordinary I/O error."""
        name = getattr(error, "sqlite_errorname", "")
        if name != "SQLITE_FULL" and name.startswith("SQLITE_IOERR"):
            probe = self._directory / "probe"
            try:
                probe.write_bytes(bytes(4096))
            except OSError as refused:
                return refused.errno in (errno.ENOSPC, errno.EDQUOT)
            finally:
                with suppress(OSError):
                    probe.unlink()
        return name == "SQLITE_FULL"

    def _use_reserve(self) -> bool:
        """Release the reserve; returns whether there was one. Until it is taken again, deleted content isn't
        overwritten with zeros, as some builds of SQLite do: that writes as much as was deleted."""
        if not self._reserve.give_up():
            return False
        self._database.execute("PRAGMA secure_delete=FAST")
        # The log can then be overwritten from its beginning. Not where the database would grow by more than the free
        # space: the reserve would be used up without effect.
        if self._log_size() <= free_bytes(self._directory):
            self._fold_in()
        return True

    def _take_reserve(self) -> bool:
        before = self._reserve.given_up
        if self._reserve.take() and before:
            self._database.execute(f"PRAGMA secure_delete={self._secure_delete}")
        return not self._reserve.given_up

    def _fold_in(self) -> bool:
        """Checkpoint the log, so that the next commit overwrites its beginning; returns whether all of it was."""
        with suppress(sqlite3.Error):
            busy, pages, folded = self._database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            return not busy and pages == folded
        return False

    def reclaim(self) -> None:
        """After the disk was full: release the space of deleted objects to it, some megabytes at a time, and take the
        reserve again once there is space. Waits for the disk."""
        if self._reserve.given_up:
            with suppress(sqlite3.Error):
                for _ in range(_RECLAIM_STEPS):
                    # As a script: `execute` would stop after the first page.
                    self._database.executescript(f"PRAGMA incremental_vacuum({_RECLAIM_PAGES})")
            with suppress(sqlite3.Error):
                self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._take_reserve()

    def wants_checkpoint(self) -> bool:
        """Whether the log is large enough for a checkpoint."""
        return self._log_size() > _CHECKPOINT_BYTES

    def _log_size(self) -> int:
        with suppress(OSError):
            return Path(f"{self._path}-wal").stat().st_size
        return 0

    def checkpoint(self) -> None:
        """Checkpoint the log, on a connection of its own: for another thread."""
        other = sqlite3.connect(self._path, isolation_level=None)
        try:
            other.execute("PRAGMA wal_checkpoint(PASSIVE)")
        finally:
            other.close()
        self._newest.sync()

    def close(self) -> None:
        """Checkpoint the log and release the directory."""
        with suppress(sqlite3.Error):
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._database.close()
        self._newest.sync()
        self._newest.close()
        self._lock.close()


def _try_in_turn(remedies: list[Callable[[], bool]]) -> bool:
    """Try remedies until one has helped, removing those that were tried; returns whether one has."""
    while remedies:
        if remedies.pop(0)():
            return True
    return False
