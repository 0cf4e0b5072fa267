"""`vcbatch pod list`: pods of jobs, selected by job, task or queue."""

from __future__ import annotations

from dataclasses import replace

import click

from vcbatch.api import names
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.names import job_names, queue_names
from vcbatch.cli.resources.kinds import POD
from vcbatch.cli.resources.listing import Asked, list_options, show_list


@click.command("list")
@click.option("-j", "--job", metavar="JOB", help="Filter by job.", shell_complete=job_names)
@click.option("-t", "--task", metavar="TASK", help="Filter by task.")
@click.option("-q", "--queue", metavar="QUEUE", help="Filter by queue.", shell_complete=queue_names)
@list_options(namespaced=True)
@access_options
def listing(access: Access, asked: Asked, job: str | None, task: str | None, queue: str | None) -> int:
    """List the pods of jobs."""
    chosen = ((names.JOB_NAME, job), (names.TASK_SPEC, task), (names.QUEUE_NAME, queue))
    wanted = [f"{label}={value}" for label, value in chosen if value is not None]
    # Pods of jobs have the label, with any value; for other pods there is kubectl.
    selector = ",".join(filter(None, [asked.label_selector, *(wanted or [names.JOB_NAME])]))
    return show_list(access, POD, replace(asked, label_selector=selector))
