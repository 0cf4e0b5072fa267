"""Reads records: from the local server, or from a store directly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import msgspec

from vcbatch.cli.base.access import Access
from vcbatch.cli.base.output import CliError
from vcbatch.core.accounting import ATTEMPTS, Attempt, Filter, from_wire
from vcbatch.interfaces.api import Api, ApiError

if TYPE_CHECKING:
    from vcbatch.runtime.client.oneshot import OneShotApi

_PAGE = 1_000
_NOT_SERVED = "this server keeps no accounting records"
_STORE_HINT = "On a cluster, name the store of the controllers: --store URL, or VCBATCH_ACCOUNTING_STORE."


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The records that a command reads: those of `store`, or of the server of `access`."""

    access: Access
    store: str | None
    all_namespaces: bool

    @property
    def many(self) -> bool:
        """Whether the records can be of several namespaces."""
        return not self._namespace

    @property
    def _namespace(self) -> str:
        """The namespace; empty for all. A store isn't read through a server, so that the context doesn't count."""
        if self.all_namespaces:
            return ""
        return (self.access.chosen_namespace or "") if self.store else self.access.namespace

    def attempts(self, chosen: Filter) -> list[Attempt]:
        """The selected records, in the order of their ends, open ones last. Raises `CliError`."""
        chosen = msgspec.structs.replace(chosen, namespace=self._namespace)
        return list(self._stored(chosen, self.store)) if self.store else self._served(chosen)

    @staticmethod
    def _stored(chosen: Filter, url: str) -> Iterator[Attempt]:
        from vcbatch.interfaces.accounting import AccountingError
        from vcbatch.runtime.accounting.store import open_store

        now = datetime.now(UTC).timestamp()
        try:
            store = open_store(url, read_only=True)
            try:
                after = ""
                while True:
                    page, after = store.page(chosen, limit=_PAGE, after=after, now=now)
                    yield from page
                    if not after:
                        return
            finally:
                store.close()
        except AccountingError as error:
            raise CliError(
                f"the accounting store can't be read: {error}",
                hint="Check --store or VCBATCH_ACCOUNTING_STORE, and that the store is reachable.",
            ) from error

    def _served(self, chosen: Filter) -> list[Attempt]:
        async def read(api: Api) -> list[Any]:
            client = cast("OneShotApi", api)
            parameters = {"filter": msgspec.json.encode(chosen).decode()}
            namespace = chosen.namespace or None
            found: list[Any] = []
            try:
                async for page in client.pages(ATTEMPTS, namespace=namespace, parameters=parameters):
                    found.extend(page)
            except ApiError as error:
                if error.not_found:
                    raise CliError(_NOT_SERVED, hint=_STORE_HINT) from error
                raise
            return found

        try:
            return [from_wire(item) for item in self.access.once(read)]
        except (msgspec.ValidationError, ValueError) as error:
            raise CliError(f"the records can't be read: {error}") from error
