"""The environment of the shell, for a program on a local server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from vcbatch.cli.base.access import Access
from vcbatch.cli.base.local_scheduler import local_state
from vcbatch.cli.base.output import CliError, note
from vcbatch.interfaces.api import ApiError
from vcbatch.sdk.export import Export, discard, store


@contextmanager
def stored_environment(access: Access, export: Export, *, required: bool) -> Iterator[str | None]:
    """Store the exported environment in the state directory of the server, for the job that the block creates; it is
    removed where the block fails. The value is its id, or None where it can't be stored: that is reported, or raised as
    `CliError` where the environment is `required`."""
    state = local_state(access)
    if state is None:
        yield _without("the state directory of the server isn't known", required=required)
        return
    try:
        number = store(export, state_dir=state.path, namespace=access.namespace)
    except OSError as error:
        yield _without(f"{state.path} can't be used: {error.strerror or error}", required=required)
        return
    try:
        yield number
    except BaseException as error:
        if not _may_have_been_created(error):
            discard(number, state_dir=state.path)
        raise


def _without(why: str, *, required: bool) -> None:
    if required:
        hint = "Pass the kubeconfig that `vcbatch up` printed, with --kubeconfig or KUBECONFIG."
        raise CliError(f"the environment can't be exported: {why}", hint=hint)
    note(f"note: the program gets the environment of the server, not of this shell: {why}")


def _may_have_been_created(error: BaseException) -> bool:
    """Whether the server may have created the job although its answer was lost."""
    cause = error.__cause__
    return not isinstance(cause, ApiError) or cause.transient
