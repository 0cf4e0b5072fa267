"""`vcbatch cronjob suspend|resume|trigger`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from vcbatch.api.resources import CRONJOBS, JOBS
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.fields import dig, objects, uid_of, words
from vcbatch.cli.base.names import cron_names
from vcbatch.cli.base.output import note, say
from vcbatch.cli.base.titles import title
from vcbatch.interfaces.api import Api
from vcbatch.runtime.random import SystemRandom

Json = dict[str, Any]

_TOKEN = 5


@click.command("suspend")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=cron_names)
@access_options
def suspend(names: Sequence[str], access: Access) -> int:
    """Suspend cron jobs: no new jobs are created. Running jobs continue."""
    return _set(access, names, suspended=True)


@click.command("resume")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=cron_names)
@access_options
def resume(names: Sequence[str], access: Access) -> int:
    """Resume suspended cron jobs. The last missed run starts immediately, unless startingDeadlineSeconds has passed."""
    return _set(access, names, suspended=False)


def _set(access: Access, names: Sequence[str], *, suspended: bool) -> int:
    word = "suspended" if suspended else "resumed"

    async def work(api: Api, name: str) -> None:
        cron = await api.get(CRONJOBS, name, namespace=access.namespace)
        if (dig(cron, "spec", "suspend") is True) is suspended:
            say(f"{title(CRONJOBS, name)} {'already' if suspended else 'not'} suspended")
            return
        patch = {"metadata": {"uid": uid_of(cron)}, "spec": {"suspend": suspended}}
        await api.patch(CRONJOBS, name, patch, namespace=access.namespace)
        say(f"{title(CRONJOBS, name)} {word}")

    return access.each(names, work)


@click.command("trigger")
@click.argument("name", shell_complete=cron_names)
@click.option("--name", "job_name", metavar="JOB", help="Name of the job.  [default: NAME-manual-xxxxx]")
@access_options
def trigger(name: str, access: Access, job_name: str | None) -> int:
    """Create a job from a cron job now, regardless of its schedule, even if it is suspended.

    The job is owned by the cron job and counts toward its concurrencyPolicy and history limits.
    """

    async def work(api: Api) -> str:
        cron = await api.get(CRONJOBS, name, namespace=access.namespace)
        if objects(cron, "status", "active") and dig(cron, "spec", "concurrencyPolicy") in ("Forbid", "Replace"):
            note(f"a job of {name} is already running; starting another one")
        created = await api.create(
            JOBS, job_of(cron, job_name or f"{name}-manual-{SystemRandom().token(_TOKEN)}"), namespace=access.namespace
        )
        return str(created["metadata"]["name"])

    say(f"{title(JOBS, access.once(work))} created")
    return 0


def job_of(cron: Json, name: str) -> Json:
    """A job from the template of a CronJob, outside of its schedule. Labels and annotations of the template are
    copied."""
    metadata: Json = {
        "name": name,
        "namespace": cron["metadata"].get("namespace", ""),
        "ownerReferences": [
            {
                "apiVersion": CRONJOBS.api_version,
                "kind": CRONJOBS.kind,
                "name": cron["metadata"]["name"],
                "uid": uid_of(cron),
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    for field in ("labels", "annotations"):
        if kept := words(cron, "spec", "jobTemplate", "metadata", field):
            metadata[field] = kept
    spec = dig(cron, "spec", "jobTemplate", "spec")
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": metadata, "spec": spec}
