"""`vcbatch snapshot`: save the scheduler's snapshot of a cluster in one file."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from vcbatch.cli.base.access import Access, cluster_access_options
from vcbatch.cli.base.output import CliError, note, say
from vcbatch.cli.whatif.projected_pods import projected_pods
from vcbatch.cli.whatif.scheduler_setup import Setup, SetupOptions, setup_options
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.scheduler.model.reads import READS, Read
from vcbatch.scheduler.simulation.recording import Settings, first_line, object_line


@click.command("snapshot")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@setup_options
@cluster_access_options
def command(access: Access, file: Path | None, setup: SetupOptions) -> int:
    """Save the scheduler's input from a cluster to FILE, for `vcbatch replay`.

    Reads with your permissions; kinds that you can't list are omitted, with a note. Only fields that the scheduler
    reads are saved: no environment variables, commands or Secrets. The pods that jobs have yet to create are included.
    """
    now = datetime.now(UTC)
    path = file or Path(f"vcbatch-snapshot-{now:%Y%m%dT%H%M%S}.jsonl.gz")

    async def work(api: Api) -> tuple[int, Setup]:
        found = await setup.read(api, access, now=now)
        objects = await read_objects(api)
        return save(path, found.settings, [*objects, *await projected_pods(api, objects)]), found

    count, found = access.streaming(work)
    say(f"{path}: {count} objects")
    if found.unknown:
        note(f"scheduler configuration: built-in default; {found.unknown}")
    elif found.doubt:
        note(f"scheduler configuration: {found.source}, from Lease {found.lease}; {found.doubt}")
    return 0


async def read_objects(api: Api) -> list[msgspec.Struct]:
    """All objects of the kinds that are read as lists. Raises `ApiError` where the server doesn't respond."""
    found: list[msgspec.Struct] = []
    for read in READS:
        if read.single:
            continue
        try:
            items = await listed(api, read)
        except ApiError as error:
            if error.code != 403:
                raise
            note(f"omitted: {read.resource.plural} ({error.message})")
            continue
        found += sorted(items, key=lambda obj: obj.metadata.key)
    return found


async def listed(api: Api, read: Read) -> Sequence[Any]:
    """The objects of a kind that the scheduler reads; none where the kind is optional and the server doesn't have it.
    Raises `ApiError`."""
    try:
        return (await api.list(read.resource, model=read.struct)).items
    except ApiError as error:
        if error.not_found and read.optional:
            return ()
        raise


def save(path: Path, settings: Settings, objects: list[msgspec.Struct]) -> int:
    """Write the file; returns the number of objects. Raises `CliError`."""
    try:
        path.write_bytes(gzip.compress(b"".join(_lines(settings, objects)), compresslevel=6, mtime=0))
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}") from error
    return len(objects)


def _lines(settings: Settings, objects: list[msgspec.Struct]) -> Iterator[bytes]:
    yield first_line(settings)
    for obj in objects:
        yield object_line(obj)
