"""`vcbatch snapshot`: a cluster as the scheduler sees it, in one file."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from vcbatch.api.names import DEFAULT_SCHEDULER
from vcbatch.api.queue import DEFAULT
from vcbatch.cli.access import Access, cluster_access_options
from vcbatch.cli.output import CliError, note, say
from vcbatch.cli.plugin_files import extensions_option
from vcbatch.cli.policy_file import policy_text, read_policy
from vcbatch.scheduler.policy import Extensions, Policy, PolicyError
from vcbatch.scheduler.policy_text import effective
from vcbatch.scheduler.reads import READS
from vcbatch.scheduler.simulation.recording import Settings, first_line, object_line
from vcbatch.seams.api import Api, ApiError


@click.command("snapshot")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--policy", "policy_file", type=click.Path(exists=True, dir_okay=False, path_type=Path), default=None,
    metavar="FILE", help="The scheduler's policy file.",
)  # fmt: skip
@click.option(
    "--scheduler-configmap", default=None, metavar="NAMESPACE/NAME[:KEY]", help="ConfigMap with the scheduler's policy."
)
@extensions_option
@click.option("--scheduler-name", "names", multiple=True, default=(DEFAULT_SCHEDULER,), show_default=True,
              metavar="NAME", help="Its schedulerName; may be repeated.")  # fmt: skip
@click.option(
    "--default-queue",
    default=DEFAULT,
    show_default=True,
    metavar="QUEUE",
    help="Its queue of PodGroups that name none.",
)
@cluster_access_options
def command(
    access: Access,
    file: Path | None,
    policy_file: Path | None,
    scheduler_configmap: str | None,
    extensions: Extensions,
    names: tuple[str, ...],
    default_queue: str,
) -> int:
    """Save what the scheduler sees of a cluster to FILE, for `vcbatch replay`.

    Everything is read with your own rights; kinds that you may not list are left out, and named. Of each object only
    what the scheduler reads is kept: no environment, no command, no Secret.
    """
    if policy_file is not None and scheduler_configmap is not None:
        raise click.UsageError("--policy and --scheduler-configmap exclude each other")
    if policy_file is not None:
        read_policy(policy_file, extensions=extensions)
    now = datetime.now(UTC)
    path = file or Path(f"vcbatch-snapshot-{now:%Y%m%dT%H%M%S}.jsonl.gz")

    async def work(api: Api) -> int:
        text = await _policy(api, policy_file, scheduler_configmap, extensions)
        settings = Settings(taken=now, policy=text, scheduler_names=names, default_queue=default_queue)
        return save(path, settings, await read_objects(api))

    count = access.streaming(work)
    say(f"{path}: {count} objects")
    if policy_file is None and scheduler_configmap is None:
        note("with the built-in policy; name the scheduler's with --policy or --scheduler-configmap where it has one")
    return 0


async def _policy(api: Api, path: Path | None, configmap: str | None, extensions: Extensions) -> str | None:
    """The policy without passwords; None for the built-in one. Raises `CliError`."""
    from vcbatch.runtime.followed_file import ConfigurationError
    from vcbatch.runtime.policy_source import PolicyConfigMap

    try:
        if configmap is not None:
            text = await PolicyConfigMap.parse(api, configmap).read()
        elif path is not None:
            text = policy_text(path)
        else:
            return None
        return effective(Policy.parse(text, extensions=extensions), metrics=False)
    except (ConfigurationError, PolicyError, ValueError) as error:
        raise CliError(f"--scheduler-configmap {configmap}: {error}" if configmap else str(error)) from error


async def read_objects(api: Api) -> list[msgspec.Struct]:
    """Every object of the kinds that are read as lists. Raises `ApiError` where the server doesn't answer."""
    found: list[msgspec.Struct] = []
    for read in READS:
        if read.single:
            continue
        try:
            listing: Any = await api.list(read.resource, model=read.struct)
        except ApiError as error:
            if error.not_found and read.optional:
                continue
            if error.code != 403:
                raise
            note(f"left out: {read.resource.plural} ({error.message})")
            continue
        found += sorted(listing.items, key=lambda obj: obj.metadata.key)
    return found


def save(path: Path, settings: Settings, objects: list[msgspec.Struct]) -> int:
    """Write the file; the number of objects. Raises `CliError`."""
    try:
        path.write_bytes(gzip.compress(b"".join(_lines(settings, objects)), compresslevel=6, mtime=0))
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}") from error
    return len(objects)


def _lines(settings: Settings, objects: list[msgspec.Struct]) -> Iterator[bytes]:
    yield first_line(settings)
    for obj in objects:
        yield object_line(obj)
