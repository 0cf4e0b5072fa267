"""Lists of accounting records, as the local server answers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from vcbatch.core.accounting import ATTEMPTS, Filter, to_wire
from vcbatch.interfaces.accounting import AccountingError
from vcbatch.interfaces.clock import Clock
from vcbatch.local.apiserver.apierrors import StatusError, bad_request
from vcbatch.local.apiserver.handler import Lists
from vcbatch.runtime.accounting.recorder import OneThread
from vcbatch.runtime.accounting.store import sqlite_store

Json = dict[str, Any]

_PAGE: Final = 500
_LARGEST_PAGE: Final = 2_000


def attempts_in(path: Path, clock: Clock) -> Lists:
    """The answers from the store in that file: the query parameters are `filter`, `limit` and `continue`."""
    store, worker = sqlite_store(path, read_only=True), OneThread()

    async def answer(namespace: str, query: Mapping[str, Sequence[str]]) -> Json:
        chosen = _filter(query, namespace)
        limit = _limit(query)
        after = (query.get("continue") or [""])[0]
        now = clock.now().timestamp()

        def read() -> Json:
            found, token = store.page(chosen, limit=limit, after=after, now=now)
            return {
                "apiVersion": ATTEMPTS.api_version,
                "kind": f"{ATTEMPTS.kind}List",
                "metadata": {"continue": token} if token else {},
                "items": [to_wire(attempt) for attempt in found],
            }

        try:
            return await worker.run(read)
        except AccountingError as error:
            raise StatusError(503, "ServiceUnavailable", f"the accounting records can't be read: {error}") from error

    return answer


def _filter(query: Mapping[str, Sequence[str]], namespace: str) -> Filter:
    given = (query.get("filter") or ["{}"])[0]
    try:
        chosen = msgspec.json.decode(given.encode(), type=Filter)
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        raise bad_request(f"filter: {error}") from error
    return msgspec.structs.replace(chosen, namespace=namespace) if namespace else chosen


def _limit(query: Mapping[str, Sequence[str]]) -> int:
    text = (query.get("limit") or [""])[0]
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    return min(number, _LARGEST_PAGE) or _PAGE
