"""`vcbatch delete -f`: delete the objects that manifests describe."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from vcbatch.api.resources import QUEUES, Resource
from vcbatch.cli.apply.order import in_order
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.output import CliError, note, say
from vcbatch.cli.base.titles import title
from vcbatch.cli.files.manifests import Manifest, files_option, read_manifests, unknown
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.clock import BlockingClock

Found = tuple[Manifest, Resource, str | None, str]
"""A manifest, its resource, its namespace and the UID of the stored object."""

_PATIENCE, _STEP = 120.0, 0.5
"""Timeout for the deletion of a queue whose jobs were deleted before it and whose pods may need time to end, and the
interval between attempts, both in seconds."""

_HELD = "can not be deleted because it has"
"""The text with which admission, also that of Volcano, rejects the deletion of a queue that isn't empty."""


@click.command("delete")
@files_option
@click.option("--dry-run", is_flag=True, help="Print what would be deleted, without deleting it.")
@click.option("--yes", "-y", is_flag=True, help="Don't ask for confirmation.")
@access_options
def command(access: Access, files: tuple[Path, ...], dry_run: bool, yes: bool) -> int:
    """Delete the objects in manifests and their dependents, such as the pods of jobs.

    Dependent objects are deleted first; a queue is deleted when its jobs have finished. Missing objects are ignored.
    """
    manifests = list(reversed(in_order(read_manifests(files))))
    for manifest in manifests:
        if manifest.resource is None:
            raise CliError(f"{manifest.place()}: {unknown(manifest)}")
    if not (dry_run or yes or sys.stdin.isatty()):
        raise click.UsageError("not a terminal: use --yes, or --dry-run to preview")
    namespace = access.namespace
    found = access.once(lambda api: _existing(api, manifests, namespace))
    for manifest, resource, where, _ in found:
        say(f"- delete {title(resource, manifest.name, namespace=where)}")
    missing = len(manifests) - len(found)
    note(f"{len(found)} to delete" + (f", {missing} not found" if missing else ""))
    if dry_run or not found:
        return 0
    if not yes and not click.confirm("Delete these objects?", err=True):
        note("Nothing was deleted.")
        return 1
    access.once(lambda api: _delete(api, found, clock=BlockingClock()))
    return 0


async def _existing(api: Api, manifests: list[Manifest], namespace: str) -> list[Found]:
    found: list[Found] = []
    for manifest in manifests:
        resource = manifest.resource
        if resource is None:
            continue
        where = (manifest.namespace or namespace) if resource.namespaced else None
        try:
            stored = await api.get(resource, manifest.name, namespace=where)
        except ApiError as error:
            if error.not_found:
                continue
            raise
        found.append((manifest, resource, where, stored["metadata"]["uid"]))
    return found


async def _delete(api: Api, found: list[Found], *, clock: Clock) -> None:
    for position, one in enumerate(found):
        manifest, resource, where, _ = one
        try:
            await _delete_one(api, one, emptied=position > 0, clock=clock)
        except ApiError as error:
            raise CliError(f"{manifest.place()}: {title(resource, manifest.name, namespace=where)}: {error}") from error
        say(f"{title(resource, manifest.name)} deleted")


async def _delete_one(api: Api, one: Found, *, emptied: bool, clock: Clock) -> None:
    """Delete the object. The deletion of a queue is retried if it fails because of objects that are `emptied` out of
    it."""
    manifest, resource, where, uid = one
    until, reported = clock.monotonic() + _PATIENCE, False
    while True:
        try:
            await api.delete(resource, manifest.name, namespace=where, uid=uid, propagation="Background")
            return
        except ApiError as error:
            if error.not_found:
                return
            held = resource == QUEUES and _HELD in error.message
            if not (held and emptied) or clock.monotonic() >= until:
                raise
            if not reported:
                reason = error.message.rpartition("denied the request: ")[2]
                note(f"waiting to delete {title(resource, manifest.name, namespace=where)}: {reason}")
                reported = True
        await clock.sleep(_STEP)
