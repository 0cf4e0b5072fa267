"""The submission of a composed job, and the deletion of the one that it replaces."""

from __future__ import annotations

from typing import Any, cast

from vcbatch.api.resources import JOBS
from vcbatch.cli.base.access import Access
from vcbatch.cli.base.deletion import PATIENCE_SECONDS, delete_and_wait
from vcbatch.cli.base.fields import uid_of
from vcbatch.cli.base.output import CliError, note
from vcbatch.cli.base.titles import title
from vcbatch.interfaces.api import Api, ApiError, get_or_none
from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.client.rest import RestApi
from vcbatch.runtime.clock import BlockingClock

Json = dict[str, Any]


def submitted_job(access: Access, job: Json, *, replace: bool) -> Json:
    """Create the job, with `replace` in place of an existing one of its name; returns the created object. Raises
    `CliError`."""
    namespace = access.namespace

    async def submit(api: Api) -> Json:
        if replace:
            await delete_first(cast("RestApi", api), job, namespace=namespace, clock=BlockingClock())
        try:
            return await api.create(JOBS, job, namespace=namespace)
        except ApiError as error:
            if not error.already_exists:
                raise
            hint = "To delete that job and run this one in its place: --replace. Or choose another --name."
            raise CliError(f"job {job['metadata'].get('name')} already exists", hint=hint) from error

    return access.once(submit)


async def delete_first(api: RestApi, job: Json, *, namespace: str, clock: Clock) -> None:
    """Delete the job of this name, if there is one, and return when it and its pods are deleted. The server validates
    the new job first, so that no job is deleted for one that it rejects. Raises `ApiError` and `CliError`."""
    name = job["metadata"]["name"]
    old = await get_or_none(api, JOBS, name, namespace=namespace)
    if old is None:
        return
    trial = {**job, "metadata": {**job["metadata"], "name": f"{name[:40].rstrip('-.')}-replaced"}}
    await api.apply(JOBS, trial, namespace=namespace, manager="vcbatch", dry_run=True)
    if not await delete_and_wait(api, JOBS, name, namespace=namespace, uid=uid_of(old), clock=clock):
        message = f"job {name} is still being deleted after {PATIENCE_SECONDS:.0f} s; the new job was not created"
        raise CliError(message, hint=f"What it waits for: `vcbatch job explain {name}`")
    note(f"{title(JOBS, name)} deleted")
