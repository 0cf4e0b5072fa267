from __future__ import annotations

import asyncio
from typing import Any

from tests.unit.apiserver.core.servers import CONFIGMAPS, Client, server, virtual
from vcbatch.api import resources
from vcbatch.local.apiserver.history import HISTORY_LENGTH

OWN = "labelSelector=own"


async def fill(client: Client, names: str) -> None:
    for name in names:
        await client.make(name, labels={"own": "yes"})


def names(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


@virtual
async def test_pages_show_one_moment_whatever_happens_between_them() -> None:
    async with server() as client:
        await fill(client, "abcdef")
        page = await client.get(f"{CONFIGMAPS}?limit=2&{OWN}")
        first_version = page.body["metadata"]["resourceVersion"]
        seen = page.items
        await client.delete(f"{CONFIGMAPS}/c")
        await client.make("bb", labels={"own": "yes"})
        while token := page.body["metadata"].get("continue"):
            page = await client.get(f"{CONFIGMAPS}?limit=2&{OWN}&continue={token}")
            assert page.body["metadata"]["resourceVersion"] == first_version
            seen += page.items

        assert seen == list("abcdef")


@virtual
async def test_the_rest_is_counted_where_nothing_is_selected() -> None:
    async with server() as client:
        await fill(client, "abc")

        page = await client.get(f"{CONFIGMAPS}?limit=1")

        assert page.body["metadata"]["remainingItemCount"] == 3  # the namespace's own config map is one
        assert "remainingItemCount" not in (await client.get(f"{CONFIGMAPS}?limit=1&{OWN}")).body["metadata"]


@virtual
async def test_an_expired_page_says_how_to_go_on() -> None:
    async with server() as client:
        await fill(client, "abc")
        token = (await client.get(f"{CONFIGMAPS}?limit=1&{OWN}")).body["metadata"]["continue"]
        await asyncio.sleep(301)

        gone = await client.get(f"{CONFIGMAPS}?limit=1&{OWN}&continue={token}")
        assert (gone.code, gone.body["reason"]) == (410, "Expired")
        fresh = gone.body["metadata"]["continue"]
        assert (await client.get(f"{CONFIGMAPS}?limit=1&{OWN}&continue={fresh}")).items == ["b"]


@virtual
async def test_a_nonsense_continue_token_is_refused() -> None:
    async with server() as client:
        assert (await client.get(f"{CONFIGMAPS}?limit=1&continue=nonsense")).code == 400


@virtual
async def test_versions_from_the_future_are_refused_and_tell_clients_to_wait() -> None:
    async with server() as client:
        answer = await client.get(f"{CONFIGMAPS}?resourceVersion=99999")

        assert (answer.code, answer.body["reason"]) == (504, "Timeout")
        assert answer.message.startswith("Timeout: Too large resource version: 99999, current: ")


@virtual
async def test_an_exact_version_is_answered_while_it_is_the_present_one() -> None:
    async with server() as client:
        await fill(client, "ab")
        version = (await client.get(CONFIGMAPS)).body["metadata"]["resourceVersion"]
        exact = f"{CONFIGMAPS}?resourceVersionMatch=Exact&resourceVersion={version}&{OWN}"
        assert (await client.get(exact)).items == ["a", "b"]

        await fill(client, "c")
        assert (await client.get(exact)).code == 410


@virtual
async def test_a_watcher_with_a_selector_sees_objects_come_and_go() -> None:
    async with server() as client:
        version = (await client.make("a", labels={"own": "no"}))["metadata"]["resourceVersion"]
        for value in ("yes", "yes", "no"):
            await client.merge(f"{CONFIGMAPS}/a", {"metadata": {"labels": {"own": value}}, "data": {"n": value * 2}})
            await client.merge(f"{CONFIGMAPS}/a", {"data": {"touched": value}})
        await client.delete(f"{CONFIGMAPS}/a")

        path = f"{CONFIGMAPS}?watch=1&resourceVersion={version}&labelSelector=own%3Dyes&timeoutSeconds=1"
        events = await client.events(path)

        assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
        last = events[-1]["object"]["metadata"]
        assert last["labels"] == {"own": "yes"}
        assert int(last["resourceVersion"]) > int(events[-2]["object"]["metadata"]["resourceVersion"])


@virtual
async def test_a_watcher_gets_what_happens_while_it_waits_and_then_bookmarks() -> None:
    async with server() as client:
        path = f"{CONFIGMAPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=150&{OWN}"
        watching = asyncio.create_task(client.events(path))
        await asyncio.sleep(10)
        await fill(client, "ab")
        events = await watching

        assert names(events) == [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", ""), ("BOOKMARK", "")]
        assert events[-1]["object"]["metadata"]["resourceVersion"] == str(client.kernel.store.version)


@virtual
async def test_what_fell_out_of_the_history_is_expired() -> None:
    async with server() as client:
        history = client.kernel.store.collection(resources.CONFIGMAPS).history
        await fill(client, "a")
        for number in range(2 * HISTORY_LENGTH + 2):
            await client.kernel.api.patch(resources.CONFIGMAPS, "a", {"data": {"n": str(number)}}, namespace="default")
        assert history.floor > 1

        (error,) = await client.events(f"{CONFIGMAPS}?watch=1&resourceVersion=1&timeoutSeconds=1")

        assert error["object"]["reason"] == "Expired" and error["object"]["code"] == 410
        assert error["object"]["message"].startswith("too old resource version: 1 (")


@virtual
async def test_a_watch_of_all_namespaces_and_one_of_another_see_their_own() -> None:
    async with server() as client:
        version = str(client.kernel.store.version)
        await fill(client, "a")
        everywhere = await client.events(f"/api/v1/configmaps?watch=1&resourceVersion={version}&timeoutSeconds=1")
        elsewhere = f"/api/v1/namespaces/kube-system/configmaps?watch=1&resourceVersion={version}&timeoutSeconds=1"

        assert names(everywhere) == [("ADDED", "a")]
        assert await client.events(elsewhere) == []


@virtual
async def test_a_table_watch_sends_its_columns_once() -> None:
    async with server() as client:
        version = str(client.kernel.store.version)
        await fill(client, "ab")
        accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
        path = f"{CONFIGMAPS}?watch=1&resourceVersion={version}&timeoutSeconds=1"
        first, second = await client.events(path, headers=accept)

        assert [column["name"] for column in first["object"]["columnDefinitions"]] == ["Name", "Data", "Age"]
        assert second["object"]["columnDefinitions"] is None
        assert second["object"]["rows"][0]["cells"][0] == "b"


@virtual
async def test_readers_never_see_what_is_not_on_disk() -> None:
    async with server() as client:
        store = client.kernel.store
        written: list[int] = []
        store.subscribe(lambda _key, change: written.append(change.record.version))
        creating = [asyncio.create_task(client.make(name)) for name in "abc"]
        await asyncio.sleep(0)
        listed = await client.get(CONFIGMAPS)
        assert all(int(item["metadata"]["resourceVersion"]) <= store.version for item in listed.body["items"])
        await asyncio.gather(*creating)
        assert written == sorted(written)
