"""`vcbatch apply`: plan, confirmation, execution."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

import click

from vcbatch.cli.apply.order import in_order
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.output import CliError, note, say
from vcbatch.cli.base.terminal import terminal_of
from vcbatch.cli.base.titles import title
from vcbatch.cli.files import known_kinds
from vcbatch.cli.files.manifests import Manifest, Unfit, files_option, gathered, unknown
from vcbatch.interfaces.api import Api
from vcbatch.runtime.clock import BlockingClock

if TYPE_CHECKING:
    from vcbatch.cli.apply.plan import Refusal, Step
    from vcbatch.runtime.client.rest import RestApi


@click.command("apply")
@files_option
@click.option("--dry-run", is_flag=True, help="Print the changes, without applying them.")
@click.option("--yes", "-y", is_flag=True, help="Don't ask for confirmation.")
@click.option("--verbose", is_flag=True, help="Also print created objects in full, and unchanged objects.")
@click.option(
    "--force-conflicts", is_flag=True,
    help="Take ownership of fields that another field manager has set.",
)  # fmt: skip
@click.option(
    "--recreate", is_flag=True,
    help="Delete and recreate objects with changed immutable fields, e.g. the tasks of a job; stops running pods.",
)  # fmt: skip
@access_options
def command(
    access: Access,
    files: tuple[Path, ...],
    dry_run: bool,
    yes: bool,
    verbose: bool,
    force_conflicts: bool,
    recreate: bool,
) -> int:
    """Apply manifests after showing a diff.

    The diff is the result of a server-side dry run, including admission and defaults. Dependencies are created first.
    If the server rejects one object, nothing is changed. Fields removed from a manifest are removed if apply set them;
    fields of other field managers are kept.
    """
    found, unfit = gathered(files)
    found, errors, hints = _sendable(found)
    unfit += errors
    if not (dry_run or yes or sys.stdin.isatty()):
        raise click.UsageError("not a terminal: use --yes, or --dry-run to preview")
    from vcbatch.cli.apply.plan import Change, plan, text_of

    for one in sorted(unfit, key=lambda one: (one.file, one.place)):
        note(str(one))
    if not found:
        _refuse([], [], unfit, hints)
    namespace = access.namespace
    steps, refusals = access.once(
        lambda api: plan(cast("RestApi", api), found, namespace=namespace, force=force_conflicts, recreate=recreate)
    )
    if refusals and not (dry_run or yes or unfit) and all(one.fixed for one in refusals):
        for line in _fixed_lines(refusals):
            note(line)
        if click.confirm("Delete and recreate them? Their running pods are stopped.", err=True):
            steps, refusals = access.once(
                lambda api: plan(cast("RestApi", api), found, namespace=namespace, force=force_conflicts, recreate=True)
            )
    terminal = terminal_of()
    for step in steps:
        if verbose or step.change is not Change.NOTHING:
            for line in text_of(step, terminal, verbose=verbose):
                say(line)
    if refusals or unfit:
        _refuse(refusals, found, unfit, hints)
    due = [step for step in steps if step.change is not Change.NOTHING]
    note(_summary(steps))
    if dry_run or not due:
        return 0
    if not yes and not click.confirm("Apply these changes?", err=True):
        note("Nothing was changed.")
        return 1
    access.once(lambda api: _carry_out(api, due))
    return 0


async def _carry_out(api: Api, steps: Sequence[Step]) -> None:
    from vcbatch.cli.apply.plan import Change, carry_out
    from vcbatch.interfaces.api import ApiError

    clock = BlockingClock()
    for done, step in enumerate(steps):
        try:
            await carry_out(cast("RestApi", api), step, clock=clock)
        except ApiError as error:
            message = f"{step.manifest.place()}: {step.title}: {error.sentence}"
            hint = f"{done} of {len(steps)} changes were applied. Run the command again to continue."
            raise CliError(message, hint=hint) from error
        done_word = {Change.CREATE: "created", Change.RECREATE: "recreated"}.get(step.change, "configured")
        say(f"{title(step.resource, step.manifest.name)} {done_word}")


def _fixed_lines(refusals: Sequence[Refusal]) -> Iterator[str]:
    yield "Immutable fields differ, so these objects have to be deleted and recreated:"
    for one in refusals:
        yield f"  {one.manifest.title}: {', '.join(one.fields)}"


def _sendable(manifests: Sequence[Manifest]) -> tuple[list[Manifest], list[Unfit], list[str]]:
    """The manifests that can be sent to a server, in the order in which they are applied; the errors of those that
    vcbatch can't apply; and hints for the user."""
    found: list[Manifest] = []
    unfit: list[Unfit] = []
    hints: list[str] = []
    for one in manifests:
        unfit += [
            Unfit(file=one.file, place=repeat.place, text=f"{one.title}: {repeat}") for repeat in one.placed.repeats()
        ]
        if one.resource is None:
            unfit.append(Unfit(file=one.file, place=one.placed.place_of("apiVersion"), text=unknown(one)))
            if not known_kinds.kind_error(one.api_version, one.kind):
                hints.append("Use `kubectl apply -f FILE` for this kind.")
        elif "name" not in one.value.get("metadata", {}):
            text = f"{one.title}: metadata.name is required"
            unfit.append(Unfit(file=one.file, place=one.placed.place_of("metadata"), text=text))
            hints.append("For metadata.generateName, use `kubectl create -f FILE`.")
        else:
            found.append(one)
    return in_order(found), unfit, hints


def _refuse(
    refusals: Sequence[Refusal], every: Sequence[Manifest], unfit: Sequence[Unfit], hints: Sequence[str]
) -> NoReturn:
    """Raise `CliError` after reporting everything but `unfit`."""
    from vcbatch.cli.apply.plan import reported_in_full

    for one in sorted(
        reported_in_full(refusals, every), key=lambda one: (one.manifest.file, one.manifest.placed.place_of(one.field))
    ):
        note(f"{one.manifest.place(one.field)}: {one.manifest.title}: {one.message}")
    others = [one for one in refusals if re.search("conflicts? with", one.message)]
    hint = "To take ownership of the fields, use --force-conflicts." if others else next(iter(hints), "")
    if any(one.fixed for one in refusals):
        hint = "To delete and recreate the object, use --recreate; its running pods are stopped."
    many = len({id(one.manifest) for one in refusals})
    if not many:
        raise CliError("invalid manifests; nothing was changed", hint=hint)
    raise CliError(f"{many} object{'' if many == 1 else 's'} rejected; nothing was changed", hint=hint)


def _summary(steps: Sequence[Step]) -> str:
    counts = Counter(step.change.value for step in steps)
    shown = ("create", "change", *(("recreate",) if counts.get("recreate") else ()))
    return ", ".join(f"{counts.get(change, 0)} to {change}" for change in shown) + (
        f", {counts.get('unchanged', 0)} unchanged"
    )
