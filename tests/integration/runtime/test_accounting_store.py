"""The store of accounting records, on SQLite and on PostgreSQL."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lacking import lacks
from tests.support.postgres import postgres
from vcbatch.core.accounting import Attempt, AttemptState, Filter, PodRun
from vcbatch.interfaces.accounting import AccountingError, AccountingStore
from vcbatch.runtime.accounting.store import open_store


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    if importlib.util.find_spec("psycopg") is None:
        lacks("psycopg, of the extra accounting-postgres")
    with postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite://{tmp_path / 'accounting.db'}"
    url: str = request.getfixturevalue("server")
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for table in ("attempts", "pods", "meta"):
            connection.execute(f"DROP TABLE IF EXISTS vcbatch_{table}")  # pyright: ignore
    return url


@pytest.fixture
def store(url: str) -> Iterator[AccountingStore]:
    opened = open_store(url)
    yield opened
    opened.close()


def attempt(uid: str = "u", number: int = 0, **values: object) -> Attempt:
    given = {"namespace": "ns", "job": "j", "user": "alice", "queue": "q", "queued": 100.0, "submitted": 100.0}
    return Attempt(job_uid=uid, attempt=number, **{**given, **values})  # type: ignore[arg-type]


def closed(uid: str = "u", number: int = 0, ended: float = 200.0, **values: object) -> Attempt:
    return attempt(uid, number, **{"ended": ended, "state": AttemptState.COMPLETED, "observed": 5, **values})


def run(uid: str, *, started: float = 110.0, ended: float | None = None, **values: object) -> PodRun:
    given = {"job_uid": "u", "attempt": 0, "pod": uid, "task": "w", "milli_cpu": 500, "memory": 10, "gpus": 2}
    return PodRun(uid=uid, started=started, ended=ended, **{**given, **values})  # type: ignore[arg-type]


def records(store: AccountingStore, *, now: float = 1000.0, **chosen: object) -> list[Attempt]:
    return list(store.page(Filter(**chosen), limit=100, now=now)[0])  # type: ignore[arg-type]


def test_usage_is_that_of_its_pods(store: AccountingStore) -> None:
    """Pods that still run count until the end of the attempt, others until their own."""
    store.write([attempt()], [run("a"), run("b", ended=150.0)], now=120.0)
    store.write([closed(ended=210.0)], [], now=210.0)
    (record,) = records(store)
    assert record.gpu_seconds == 2 * (100 + 40)
    assert record.cpu_seconds == 0.5 * (100 + 40)
    assert record.memory_byte_seconds == 10 * (100 + 40)
    assert (record.started, record.exit_code, record.pods) == (110.0, 0, 2)


def test_open_records_have_the_usage_so_far(store: AccountingStore) -> None:
    store.write([attempt()], [run("a")], now=120.0)
    (record,) = records(store, now=160.0)
    assert (record.gpu_seconds, record.state, record.ended) == (100.0, "Running", None)


def test_a_record_is_written_once_however_often_it_is_sent(store: AccountingStore) -> None:
    """Repetitions, records of a replica that lost its Lease, and late open records change nothing."""
    pods = [run("a", ended=150.0, failed=True, exit_code=3), run("b")]
    final = closed(state=AttemptState.FAILED, ended=200.0, observed=9)
    store.write([final], pods, now=200.0)
    (once,) = records(store)
    store.write([final, final], pods, now=201.0)
    store.write([attempt(observed=3)], [run("b")], now=202.0)
    store.write([closed(state=AttemptState.COMPLETED, ended=190.0, observed=4)], [run("a", ended=150.0)], now=203.0)
    assert records(store) == [once]
    assert (once.exit_code, once.failed_pod, once.exit_codes) == (3, "a", {"w": 3})


def test_two_leaders_at_once(url: str) -> None:
    """The record of the newer version of the job stays, in whatever order the two write."""
    first, second = open_store(url), open_store(url)
    first.write([], [], now=1.0)
    errors: list[BaseException] = []

    def write(store: AccountingStore, state: AttemptState, observed: int) -> None:
        try:
            for number in range(40):
                store.write([closed(f"u{number}", state=state, observed=observed)], [], now=200.0)
        except BaseException as error:
            errors.append(error)

    threads = [
        threading.Thread(target=write, args=(first, AttemptState.FAILED, 4)),
        threading.Thread(target=write, args=(second, AttemptState.COMPLETED, 7)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert {(each.job_uid, each.state) for each in records(first)} == {(f"u{n}", "Completed") for n in range(40)}
    first.close()
    second.close()


def test_an_end_that_was_not_seen_closes_only_open_records(store: AccountingStore) -> None:
    store.write([attempt("lost"), closed("done")], [run("p", job_uid="lost")], now=150.0)
    assert store.last_seen() == 150.0
    assert [each.job_uid for each in store.open_attempts()] == ["lost"]
    assert [each.uid for each in store.open_runs()] == ["p"]
    ends = [closed(uid, state=AttemptState.UNKNOWN, ended=150.0, observed=99) for uid in ("lost", "done", "never")]
    store.close_unseen(ends, [])
    assert {each.job_uid: each.state for each in records(store)} == {"lost": "Unknown", "done": "Completed"}
    assert next(each for each in records(store) if each.job_uid == "lost").gpu_seconds == 2 * 40.0


def test_pages_select_as_the_filter_says(store: AccountingStore) -> None:
    written = [
        closed(f"u{number:02}", ended=200.0 + number // 3, user=f"user{number % 3}", queue=f"q{number % 2}")
        for number in range(25)
    ] + [attempt("open1", queued=150.0), attempt("open2", queued=500.0, namespace="other")]
    store.write(written, [], now=300.0)
    for chosen in (
        Filter(),
        Filter(include_open=False),
        Filter(since=203.0, until=206.0, include_open=False),
        Filter(until=400.0),
        Filter(users=("user1", "user2"), queues=("q1",)),
        Filter(namespace="other"),
        Filter(states=("Pending",)),
        Filter(states=("Completed",)),
        Filter(jobs=("none",)),
    ):
        found: list[Attempt] = []
        token = ""
        while True:
            page, token = store.page(chosen, limit=7, after=token, now=1000.0)
            found += page
            if not token:
                break
        keys = [each.job_uid for each in found]
        assert len(keys) == len(set(keys))
        assert set(keys) == {each.job_uid for each in written if chosen.matches(each)}, chosen
        ends = [each.ended if each.ended is not None else float("inf") for each in found]
        assert ends == sorted(ends)


def test_a_page_after_a_malformed_token(store: AccountingStore) -> None:
    store.write([], [], now=1.0)
    with pytest.raises(AccountingError, match="continue token"):
        store.page(Filter(), limit=1, after="x", now=1.0)


def test_old_records_are_deleted(store: AccountingStore) -> None:
    day = 86_400.0
    store.write([closed("old", ended=day), closed("new", ended=5 * day), attempt("open")], [], now=5 * day)
    assert store.prune(before=2 * day, now=6 * day) == 1
    assert {each.job_uid for each in records(store)} == {"new", "open"}


def test_a_reader_does_not_create_a_store(tmp_path: Path) -> None:
    store = open_store(f"sqlite://{tmp_path / 'none.db'}", read_only=True)
    with pytest.raises(AccountingError, match="doesn't exist"):
        store.page(Filter(), limit=1, now=1.0)
    assert not list(tmp_path.iterdir())


def test_a_store_that_fails_is_used_again_when_it_works(tmp_path: Path) -> None:
    path = tmp_path / "place" / "accounting.db"
    path.parent.write_text("in the way")
    store = open_store(f"sqlite://{path}")
    with pytest.raises(AccountingError):
        store.write([attempt()], [], now=1.0)
    path.parent.unlink()
    store.write([attempt()], [], now=1.0)
    assert len(records(store)) == 1
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("url", ["sqlite://relative.db", "sqlite:///", "mysql://h/d", "", "accounting.db"])
def test_urls_that_can_not_work(url: str) -> None:
    with pytest.raises(AccountingError):
        open_store(url).write([], [], now=1.0)


def test_errors_have_no_passwords(server: str) -> None:
    wrong = server.replace("p%40ss%2Fword", "s3cret-word").replace("/postgres", "/s3cret-word")
    with pytest.raises(AccountingError) as caught:
        open_store(wrong).write([], [], now=1.0)
    assert "s3cret-word" not in str(caught.value)
