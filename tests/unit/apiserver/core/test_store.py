from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.unit.apiserver.core.servers import CONFIGMAPS, configmap, owner, server, virtual
from vcbatch.api import resources
from vcbatch.local.apiserver.apierrors import StatusError
from vcbatch.local.apiserver.persistence import SCHEMA_VERSION, Persistence, StateError, StoredObject, WriteFailed
from vcbatch.local.apiserver.store import Store


def obj(name: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "n", "uid": f"uid-{name}", **metadata},
    }


class RefusingDisk:
    """A persistence that refuses writes while `full`."""

    def __init__(self) -> None:
        self.full = False
        self.rows: dict[str, StoredObject] = {}

    def version(self) -> int:
        return 1

    def load(self) -> list[StoredObject]:
        return []

    def write(self, objects: Any, version: int) -> None:
        if self.full:
            raise WriteFailed("database or disk is full", full=True)
        self.rows.update({row.name: row for row in objects})

    def close(self) -> None: ...


@virtual
async def test_versions_grow_with_every_write_of_any_kind() -> None:
    store = Store()
    first = store.put(resources.CONFIGMAPS, obj("a"), None)
    second = store.put(resources.SECRETS, obj("a"), None)
    gone = store.remove(resources.CONFIGMAPS, first)

    assert first.version < second.version < gone.version
    await store.settled()
    assert store.version == gone.version


@virtual
async def test_nothing_is_published_before_it_is_on_disk() -> None:
    disk = RefusingDisk()
    store = Store(persistence=disk)  # type: ignore[arg-type]
    seen: list[str] = []
    store.subscribe(lambda _key, change: seen.append(change.type))

    store.put(resources.CONFIGMAPS, obj("a"), None)
    assert seen == [] and store.version == 1
    await store.settled()

    assert seen == ["ADDED"] and "a" in disk.rows


@virtual
async def test_a_refused_group_leaves_memory_as_it_was() -> None:
    disk = RefusingDisk()
    store = Store(persistence=disk)  # type: ignore[arg-type]
    kept = store.put(resources.CONFIGMAPS, obj("kept", ownerReferences=[{"uid": "o"}]), None)
    doomed = store.put(resources.CONFIGMAPS, obj("doomed"), None)
    await store.settled()

    disk.full = True
    changed = store.put(resources.CONFIGMAPS, obj("kept", labels={"new": "1"}), kept)
    store.put(resources.CONFIGMAPS, obj("kept", labels={"new": "2"}), changed)
    store.put(resources.CONFIGMAPS, obj("new", ownerReferences=[{"uid": "o"}]), None)
    store.remove(resources.CONFIGMAPS, doomed)
    with pytest.raises(StatusError) as refused:
        await store.settled()

    assert refused.value.code == 507 and "nothing" in refused.value.message
    assert [record.name for record in store.collection(resources.CONFIGMAPS).sorted(None)] == ["doomed", "kept"]
    assert store.get(resources.CONFIGMAPS, "n", "kept") is kept
    assert [record.name for record in store.dependents("o")] == ["kept"]

    disk.full = False
    again = store.put(resources.CONFIGMAPS, obj("new"), None)
    await store.settled()
    assert store.version == again.version


@virtual
async def test_a_restart_finds_everything_and_no_older_watch(tmp_path: Path) -> None:
    async with server(tmp_path) as client:
        first = await client.make("a", labels={"x": "1"})
        await client.make("b", ownerReferences=[owner(first)])
        await client.make("c")
        await client.delete(f"{CONFIGMAPS}/c")
        version = client.kernel.store.version

    async with server(tmp_path) as client:
        answer = await client.get(f"{CONFIGMAPS}?labelSelector=x")
        assert answer.items == ["a"]
        assert answer.body["items"][0]["metadata"]["uid"] == first["metadata"]["uid"]
        assert client.kernel.store.version >= version
        assert (await client.get(f"{CONFIGMAPS}/c")).code == 404
        assert [one.name for one in client.kernel.store.dependents(first["metadata"]["uid"])] == ["b"]
        (error,) = await client.events(f"{CONFIGMAPS}?watch=1&resourceVersion=2")
        assert error["type"] == "ERROR" and error["object"]["code"] == 410


@virtual
async def test_a_full_disk_fails_the_request_and_nothing_else(tmp_path: Path) -> None:
    async with server(tmp_path) as client:
        before = await client.make("before")
        persistence = client.kernel.persistence
        assert persistence
        (pages,) = persistence._database.execute("PRAGMA page_count").fetchone()
        persistence._database.execute(f"PRAGMA max_page_count={pages}")

        refused = await client.post(CONFIGMAPS, configmap("big", data={"k": "v" * 500_000}))
        assert refused.code == 507 and "no space left" in refused.message
        assert (await client.get(f"{CONFIGMAPS}/big")).code == 404
        assert (await client.get(f"{CONFIGMAPS}/before")).body == before

        persistence._database.execute("PRAGMA max_page_count=100000")
        assert (await client.post(CONFIGMAPS, configmap("big", data={"k": "v" * 500_000}))).code == 201


def test_state_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    Persistence(tmp_path).close()
    with sqlite3.connect(tmp_path / "state.db") as database:
        database.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    database.close()

    with pytest.raises(StateError, match="newer version of vcbatch"):
        Persistence(tmp_path)


def test_one_directory_is_one_servers(tmp_path: Path) -> None:
    first = Persistence(tmp_path)
    try:
        with pytest.raises(StateError, match="in use by another server"):
            Persistence(tmp_path)
    finally:
        first.close()
    Persistence(tmp_path).close()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_text("this is no database, but long enough to be taken for one" * 10)

    with pytest.raises(StateError, match="can't be read"):
        Persistence(tmp_path)


def test_the_directory_is_its_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    Persistence(folder).close()

    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "state.db").stat().st_mode & 0o077 == 0


def test_a_checkpoint_folds_the_log_in(tmp_path: Path) -> None:
    persistence = Persistence(tmp_path)
    try:
        for number in range(8):
            rows = [StoredObject("/x", "", f"{number}-{i}", i, b"x" * 10_000) for i in range(100)]
            persistence.write(rows, number + 2)
        assert persistence.wants_checkpoint()
        persistence.checkpoint()
        assert len(list(persistence.load())) == 800
        assert persistence.version() == 9
    finally:
        persistence.close()
