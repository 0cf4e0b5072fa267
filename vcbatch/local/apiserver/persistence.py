"""The state on disk: one SQLite database in WAL mode, written in one transaction per group of requests.

A committed transaction survives the death of the process (the operating system holds the pages); a power loss may cost
the last moments, never consistency. Checkpoints, which wait for the disk, run in another thread.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

SCHEMA_VERSION = 1
_CHECKPOINT_BYTES = 4 * 1024 * 1024


class StateError(Exception):
    """The state directory can't be used: another server has it, or a newer version wrote it."""


class WriteFailed(Exception):
    """A group of writes didn't reach the disk; nothing of it did. `full`: for want of space."""

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


class Persistence:
    """The database of one state directory. Not thread-safe but for `checkpoint`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / "state.db"
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = self._acquire()
        try:
            self._database = self._open()
        except BaseException:
            self._lock.close()
            raise

    def _acquire(self) -> IO[str]:
        lock = (self._directory / "lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise StateError(f"the state directory {self._directory} is in use by another server") from None
        return lock

    def _open(self) -> sqlite3.Connection:
        created = not self._path.exists()
        if created:
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
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
        """The newest resourceVersion that was committed. Raises `StateError`."""
        try:
            (version,) = self._database.execute("SELECT version FROM counter").fetchone()
        except (sqlite3.DatabaseError, TypeError) as error:
            raise self.damaged(error) from error
        return int(version)

    def load(self) -> Iterator[StoredObject]:
        """All that is stored. Raises `StateError` where a damaged place is met."""
        try:
            rows = self._database.execute("SELECT collection, namespace, name, version, body FROM objects")
            for row in rows:
                yield StoredObject(*row)
        except sqlite3.DatabaseError as error:
            raise self.damaged(error) from error

    def damaged(self, error: object) -> StateError:
        """What to raise where the database opens and its content makes no sense."""
        return StateError(
            f"the state in {self._path} is damaged ({error}): restore the file from a copy, or start on another "
            "--state-dir"
        )

    def write(self, objects: Iterable[StoredObject], version: int) -> None:
        """Commit all or nothing; raises `WriteFailed`. `version` is the newest resourceVersion given out."""
        rows = list(objects)
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
            full = getattr(error, "sqlite_errorname", "") == "SQLITE_FULL"
            raise WriteFailed(str(error), full=full) from error

    def wants_checkpoint(self) -> bool:
        """Whether the log has grown enough to be worth folding into the database."""
        with suppress(OSError):
            return Path(f"{self._path}-wal").stat().st_size > _CHECKPOINT_BYTES
        return False

    def checkpoint(self) -> None:
        """Fold the log into the database, on a connection of its own: for another thread."""
        other = sqlite3.connect(self._path, isolation_level=None)
        try:
            other.execute("PRAGMA wal_checkpoint(PASSIVE)")
        finally:
            other.close()

    def close(self) -> None:
        """Fold the log in and let go of the directory."""
        with suppress(sqlite3.Error):
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._database.close()
        self._lock.close()
