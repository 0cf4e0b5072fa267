"""The store of accounting records in SQL: SQLite, or PostgreSQL by psycopg.

Both use the same statements. An attempt is a row whose columns are for users' queries and whose `record` has all of it;
its pods are rows only while the record is open and for a day after, since their usage is added up when it is closed.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import quote, unquote, urlsplit

import msgspec

from vcbatch.core.accounting import Attempt, Filter, PodRun, merged_attempt, merged_run, with_totals
from vcbatch.interfaces.accounting import AccountingError, AccountingStore
from vcbatch.interfaces.installation import how_to_install

T = TypeVar("T")

SCHEMA_VERSION: Final = 1
KEPT_RUNS_SECONDS: Final = 86_400.0
"""How long pods of closed records are kept."""
_CHUNK: Final = 400
_BUSY_SECONDS: Final = 5.0
_NEVER: Final = 9e18
"""The end of open records in the order of pages."""
_COLUMNS: Final = (
    "job_uid", "attempt", "namespace", "job", "user_name", "queue", "priority_class", "state", "reason", "exit_code",
    "milli_cpu", "memory", "gpus", "submitted", "queued", "admitted", "started", "ended", "restarts", "cpu_seconds",
    "memory_byte_seconds", "gpu_seconds", "record",
)  # fmt: skip
_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS vcbatch_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS vcbatch_attempts (
        job_uid TEXT NOT NULL, attempt BIGINT NOT NULL, namespace TEXT NOT NULL, job TEXT NOT NULL,
        user_name TEXT NOT NULL, queue TEXT NOT NULL, priority_class TEXT NOT NULL, state TEXT NOT NULL,
        reason TEXT NOT NULL, exit_code BIGINT, milli_cpu BIGINT NOT NULL, memory NUMERIC NOT NULL,
        gpus BIGINT NOT NULL, submitted DOUBLE PRECISION NOT NULL, queued DOUBLE PRECISION NOT NULL,
        admitted DOUBLE PRECISION, started DOUBLE PRECISION, ended DOUBLE PRECISION, restarts BIGINT NOT NULL,
        cpu_seconds DOUBLE PRECISION NOT NULL, memory_byte_seconds DOUBLE PRECISION NOT NULL,
        gpu_seconds DOUBLE PRECISION NOT NULL, record TEXT NOT NULL, PRIMARY KEY (job_uid, attempt))""",
    "CREATE INDEX IF NOT EXISTS vcbatch_attempts_by_end ON vcbatch_attempts (COALESCE(ended, 9e18), job_uid, attempt)",
    """CREATE TABLE IF NOT EXISTS vcbatch_pods (uid TEXT PRIMARY KEY, job_uid TEXT NOT NULL, attempt BIGINT NOT NULL,
        ended DOUBLE PRECISION, record TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS vcbatch_pods_by_attempt ON vcbatch_pods (job_uid, attempt)",
)
_END: Final = "COALESCE(ended, 9e18)"

_encode = msgspec.json.encode
_attempt: Final = msgspec.json.Decoder(Attempt)
_run: Final = msgspec.json.Decoder(PodRun)


class Database(Protocol):
    """A connection. Statements have `?` for their values."""

    def query(self, statement: str, values: Sequence[Any] = ()) -> Sequence[Sequence[Any]]: ...

    def many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None: ...

    def execute(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Returns the number of changed rows."""
        ...

    def begin(self) -> None:
        """Begin a transaction that is the only one to write."""
        ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...


class SqlStore:
    """The store on a database, which is connected to when it is first needed, and again after an error."""

    def __init__(
        self, connect: Callable[[], Database], errors: tuple[type[Exception], ...], *, secret: str = ""
    ) -> None:
        """`errors`: what the database raises. `secret`: a password that error messages must not have."""
        self._connect = connect
        self._errors = errors
        self._secret = secret
        self._database: Database | None = None

    # Writes

    def write(self, attempts: Sequence[Attempt], runs: Sequence[PodRun], *, now: float) -> None:
        with self._transaction() as database:
            self._put_runs(database, runs)
            self._put_attempts(database, attempts, now=now)
            self._note_seen(database, now)

    def close_unseen(self, attempts: Sequence[Attempt], runs: Sequence[PodRun]) -> None:
        with self._transaction() as database:
            stored = _stored_attempts(database, [(each.job_uid, each.attempt) for each in attempts])
            still = [each for each in attempts if (old := stored.get((each.job_uid, each.attempt))) and old.open]
            self._put_runs(database, runs)
            self._put_attempts(database, still, now=0.0)

    def prune(self, *, before: float, now: float) -> int:
        with self._transaction() as database:
            database.execute(
                "DELETE FROM vcbatch_pods WHERE EXISTS (SELECT 1 FROM vcbatch_attempts AS one WHERE one.job_uid = "
                "vcbatch_pods.job_uid AND one.attempt = vcbatch_pods.attempt AND one.ended < ?)",
                (now - KEPT_RUNS_SECONDS,),
            )
            return database.execute(f"DELETE FROM vcbatch_attempts WHERE {_END} < ?", (before,))  # noqa: S608

    @staticmethod
    def _put_runs(database: Database, runs: Sequence[PodRun]) -> None:
        stored: dict[str, PodRun] = {}
        for chunk in _chunks([run.uid for run in runs]):
            marks = ",".join("?" * len(chunk))
            for (record,) in database.query(f"SELECT record FROM vcbatch_pods WHERE uid IN ({marks})", chunk):  # noqa: S608
                run = _run.decode(record)
                stored[run.uid] = run
        changed: dict[str, PodRun] = {}
        for run in runs:
            merged = merged_run(changed.get(run.uid) or stored.get(run.uid), run)
            if merged != stored.get(run.uid):
                changed[run.uid] = merged
        database.many(
            "INSERT INTO vcbatch_pods (uid, job_uid, attempt, ended, record) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (uid) DO UPDATE SET ended = excluded.ended, record = excluded.record",
            [(run.uid, run.job_uid, run.attempt, run.ended, _encode(run).decode()) for run in changed.values()],
        )

    @staticmethod
    def _put_attempts(database: Database, attempts: Sequence[Attempt], *, now: float) -> None:
        stored = _stored_attempts(database, [(each.job_uid, each.attempt) for each in attempts])
        changed: dict[tuple[str, int], Attempt] = {}
        for seen in attempts:
            key = seen.job_uid, seen.attempt
            changed[key] = merged_attempt(changed.get(key) or stored.get(key), seen)
        runs = _runs_of(database, [key for key, each in changed.items() if not each.open])
        rows = [
            _row(each if each.open else with_totals(each, runs.get(key, ()), now=now))
            for key, each in changed.items()
            if each != stored.get(key)
        ]
        updates = ", ".join(f"{column} = excluded.{column}" for column in _COLUMNS[2:])
        database.many(
            f"INSERT INTO vcbatch_attempts ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))}) "  # noqa: S608
            f"ON CONFLICT (job_uid, attempt) DO UPDATE SET {updates}",
            rows,
        )

    @staticmethod
    def _note_seen(database: Database, now: float) -> None:
        database.execute(
            "INSERT INTO vcbatch_meta (name, value) VALUES ('last-seen', ?) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (repr(now),),
        )

    # Reads

    def last_seen(self) -> float | None:
        rows = self._read(lambda database: database.query("SELECT value FROM vcbatch_meta WHERE name = 'last-seen'"))
        return float(rows[0][0]) if rows else None

    def open_attempts(self) -> Sequence[Attempt]:
        rows = self._read(
            lambda database: database.query(f"SELECT record FROM vcbatch_attempts WHERE {_END} >= ?", (_NEVER,))  # noqa: S608
        )
        return [_attempt.decode(record) for (record,) in rows]

    def open_runs(self) -> Sequence[PodRun]:
        statement = (
            "SELECT pod.record FROM vcbatch_pods AS pod JOIN vcbatch_attempts AS one ON one.job_uid = pod.job_uid "
            "AND one.attempt = pod.attempt WHERE pod.ended IS NULL AND one.ended IS NULL"
        )
        rows = self._read(lambda database: database.query(statement))
        return [_run.decode(record) for (record,) in rows]

    def page(self, chosen: Filter, *, limit: int, after: str = "", now: float) -> tuple[Sequence[Attempt], str]:
        where, values = _conditions(chosen)
        if after:
            where.append(f"({_END}, job_uid, attempt) > (?, ?, ?)")
            values += _cursor(after)
        statement = (
            f"SELECT record FROM vcbatch_attempts WHERE {' AND '.join(where) or '1 = 1'} "  # noqa: S608
            f"ORDER BY {_END}, job_uid, attempt LIMIT ?"
        )

        def read(database: Database) -> tuple[Sequence[Attempt], str]:
            found = [_attempt.decode(record) for (record,) in database.query(statement, (*values, limit + 1))]
            more, found = len(found) > limit, found[:limit]
            runs = _runs_of(database, [(each.job_uid, each.attempt) for each in found if each.open])
            shown = [
                with_totals(each, runs.get((each.job_uid, each.attempt), ()), now=now) if each.open else each
                for each in found
            ]
            return shown, _token(found[-1]) if more else ""

        shown, token = self._read(read)
        if chosen.states:  # those of open records follow from their pods
            shown = [each for each in shown if each.state in chosen.states]
        return shown, token

    def close(self) -> None:
        if self._database is not None:
            with suppress(*self._errors):
                self._database.close()
            self._database = None

    # The connection

    def _read(self, read: Callable[[Database], T]) -> T:
        with self._guarded() as database:
            return read(database)

    @contextmanager
    def _transaction(self) -> Iterator[Database]:
        with self._guarded() as database:
            database.begin()
            try:
                yield database
                database.commit()
            except BaseException:
                with suppress(*self._errors):
                    database.rollback()
                raise

    @contextmanager
    def _guarded(self) -> Iterator[Database]:
        try:
            if self._database is None:
                self._database = self._connect()
            yield self._database
        except (*self._errors, OSError, msgspec.MsgspecError) as error:
            self.close()
            text = " ".join(str(error).split()) or type(error).__name__
            raise AccountingError(text.replace(self._secret, "***") if self._secret else text) from None


def _row(attempt: Attempt) -> Sequence[Any]:
    return (
        attempt.job_uid,
        attempt.attempt,
        attempt.namespace,
        attempt.job,
        attempt.user,
        attempt.queue,
        attempt.priority_class,
        attempt.state,
        attempt.reason,
        attempt.exit_code,
        attempt.milli_cpu,
        attempt.memory,
        attempt.gpu_count,
        attempt.submitted,
        attempt.queued,
        attempt.admitted,
        attempt.started,
        attempt.ended,
        attempt.restarts,
        attempt.cpu_seconds,
        attempt.memory_byte_seconds,
        attempt.gpu_seconds,
        _encode(attempt).decode(),
    )


def _stored_attempts(database: Database, keys: Sequence[tuple[str, int]]) -> dict[tuple[str, int], Attempt]:
    found: dict[tuple[str, int], Attempt] = {}
    for chunk in _chunks(sorted({uid for uid, _ in keys})):
        marks = ",".join("?" * len(chunk))
        for (record,) in database.query(f"SELECT record FROM vcbatch_attempts WHERE job_uid IN ({marks})", chunk):  # noqa: S608
            attempt = _attempt.decode(record)
            found[attempt.job_uid, attempt.attempt] = attempt
    return found


def _runs_of(database: Database, keys: Sequence[tuple[str, int]]) -> dict[tuple[str, int], list[PodRun]]:
    found: dict[tuple[str, int], list[PodRun]] = {}
    for chunk in _chunks(sorted({uid for uid, _ in keys})):
        marks = ",".join("?" * len(chunk))
        for (record,) in database.query(f"SELECT record FROM vcbatch_pods WHERE job_uid IN ({marks})", chunk):  # noqa: S608
            run = _run.decode(record)
            found.setdefault((run.job_uid, run.attempt), []).append(run)
    return found


def _conditions(chosen: Filter) -> tuple[list[str], list[Any]]:
    where: list[str] = []
    values: list[Any] = []
    if chosen.since is not None:
        where.append(f"{_END} >= ?")
        values.append(chosen.since)
    if chosen.until is not None:
        where.append("COALESCE(ended, queued) < ?")
        values.append(chosen.until)
    if not chosen.include_open:
        where.append("ended IS NOT NULL")
    if chosen.namespace:
        where.append("namespace = ?")
        values.append(chosen.namespace)
    for column, allowed in (("user_name", chosen.users), ("queue", chosen.queues), ("job", chosen.jobs)):
        if allowed:
            where.append(f"{column} IN ({', '.join('?' * len(allowed))})")
            values += allowed
    if chosen.states:
        where.append(f"(ended IS NULL OR state IN ({', '.join('?' * len(chosen.states))}))")
        values += chosen.states
    return where, values


def _token(last: Attempt) -> str:
    return f"{_NEVER if last.ended is None else last.ended!r}/{last.job_uid}/{last.attempt}"


def _cursor(token: str) -> list[Any]:
    """Raises `AccountingError` for a malformed token."""
    try:
        end, uid, attempt = token.split("/")
        return [float(end), uid, int(attempt)]
    except ValueError:
        raise AccountingError("invalid continue token") from None


def _chunks(values: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(values), _CHUNK):
        yield values[start : start + _CHUNK]


# SQLite --------------------------------------------------------------------------------------------------------------


class _Sqlite:
    def __init__(self, path: Path, *, read_only: bool) -> None:
        if read_only and not path.exists():
            raise FileNotFoundError(f"{path} doesn't exist")
        if not read_only:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not path.exists():
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        uri = f"file:{quote(str(path))}?mode={'ro' if read_only else 'rw'}"
        self._connection = sqlite3.connect(
            uri, uri=True, isolation_level=None, check_same_thread=False, timeout=_BUSY_SECONDS
        )
        try:
            if not read_only:
                self._connection.execute("PRAGMA journal_mode=WAL")
                self._connection.execute("PRAGMA synchronous=NORMAL")
                _prepare(self)
        except BaseException:
            self._connection.close()
            raise

    def query(self, statement: str, values: Sequence[Any] = ()) -> Sequence[Sequence[Any]]:
        return self._connection.execute(statement, values).fetchall()

    def many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            self._connection.executemany(statement, rows)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> int:
        return self._connection.execute(statement, values).rowcount

    def begin(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self._connection.execute("COMMIT")

    def rollback(self) -> None:
        self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


def _prepare(database: Database) -> None:
    """Create the tables. Raises OSError where a newer version created them."""
    database.begin()
    try:
        for statement in _TABLES:
            database.execute(statement)
        rows = database.query("SELECT value FROM vcbatch_meta WHERE name = 'schema'")
        if not rows:
            database.execute("INSERT INTO vcbatch_meta (name, value) VALUES ('schema', ?)", (str(SCHEMA_VERSION),))
        elif int(rows[0][0]) > SCHEMA_VERSION:
            raise OSError(f"a newer version of vcbatch wrote the store (schema {rows[0][0]})")
        database.commit()
    except BaseException:
        database.rollback()
        raise


# PostgreSQL ----------------------------------------------------------------------------------------------------------

_TIMEOUT_SECONDS: Final = 10


class _Postgres:
    def __init__(self, url: str, *, read_only: bool) -> None:
        import psycopg

        options = f"-c statement_timeout={_TIMEOUT_SECONDS * 1000} -c lock_timeout={_TIMEOUT_SECONDS * 1000}"
        self._connection = psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=_TIMEOUT_SECONDS,
            options=options,
            application_name="vcbatch-accounting",
            keepalives_idle=30,
        )
        try:
            if not read_only:
                _prepare(self)
        except BaseException:
            self._connection.close()
            raise

    def query(self, statement: str, values: Sequence[Any] = ()) -> Sequence[Sequence[Any]]:
        return self._connection.execute(_numbered(statement), values).fetchall()

    def many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            with self._connection.cursor() as cursor:
                cursor.executemany(_numbered(statement), rows)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> int:
        return self._connection.execute(_numbered(statement), values).rowcount

    def begin(self) -> None:
        self._connection.execute("BEGIN")
        # The replicas of the controllers write one after the other: what one reads, no other changes before it writes.
        self._connection.execute("SELECT pg_advisory_xact_lock(hashtext('vcbatch-accounting'))")

    def commit(self) -> None:
        self._connection.execute("COMMIT")

    def rollback(self) -> None:
        self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


def _numbered(statement: str) -> Any:
    """The statement with psycopg's placeholders."""
    return statement.replace("%", "%%").replace("?", "%s")


def open_store(url: str, *, read_only: bool = False) -> AccountingStore:
    """The store at `sqlite:///PATH` or `postgresql://...`; it connects when it is first used. With `read_only`, it
    isn't created. Raises `AccountingError` for a URL that can't work, without naming passwords."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        path = Path(unquote(parts.path))
        if parts.netloc or not path.is_absolute():
            raise AccountingError("a SQLite store needs an absolute path: sqlite:///PATH")
        return sqlite_store(path, read_only=read_only)
    if parts.scheme not in ("postgresql", "postgres"):
        raise AccountingError(
            f"unknown accounting store {parts.scheme!r}: must be sqlite:///PATH or postgresql://USER@HOST/DATABASE"
        )
    try:
        import psycopg
    except ImportError as error:
        how = how_to_install("accounting-postgres")
        raise AccountingError(f"PostgreSQL needs the package psycopg. {how}") from error
    secret = unquote(parts.password or "")
    return SqlStore(lambda: _Postgres(url, read_only=read_only), (psycopg.Error,), secret=secret)


def sqlite_store(path: Path, *, read_only: bool = False) -> SqlStore:
    """The store in that file."""
    return SqlStore(lambda: _Sqlite(path, read_only=read_only), (sqlite3.Error,))
