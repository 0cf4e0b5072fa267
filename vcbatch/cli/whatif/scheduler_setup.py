"""The configuration of a cluster's scheduler: from options, from the local server's state directory, or from its
Lease."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from vcbatch.api.names import COMPONENTS_NAMESPACE, DEFAULT_SCHEDULER, SCHEDULER_LEASE
from vcbatch.cli.base.names import queue_names
from vcbatch.cli.base.output import CliError

if TYPE_CHECKING:
    from vcbatch.cli.base.local_scheduler import LocalScheduler
    from vcbatch.cli.base.reach import Access
    from vcbatch.interfaces.api import Api
    from vcbatch.scheduler.framework.policy import Extensions, Policy
    from vcbatch.scheduler.simulation.recording import Settings

F = TypeVar("F", bound=Callable[..., object])
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


_NAME_IT = "pass --policy or --scheduler-configmap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A running scheduler's configuration.

    Attributes:
        policy: the one in force; the built-in one where it isn't known.
        source: the name of the policy in messages; empty where it isn't known.
        unknown: why it isn't known, and what to do about it; empty where it is.
        lease: `namespace/name` of the Lease that published the policy; empty where none did.
        doubt: why the Lease may be out of date; empty where it isn't.
    """

    settings: Settings
    policy: Policy
    source: str = ""
    unknown: str = ""
    lease: str = ""
    doubt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupOptions:
    """The options about the scheduler. Unset ones default to the configuration of the local server, or of the
    scheduler's Lease."""

    policy_file: Path | None = None
    configmap: str | None = None
    lease: str | None = None
    plugins: tuple[Path, ...] = ()
    names: tuple[str, ...] = ()
    default_queue: str | None = None

    @property
    def names_policy(self) -> bool:
        """Whether the options name a source of the policy, so that an unavailable one is an error."""
        return bool(self.policy_file or self.configmap or self.lease)

    async def read(self, api: Api, access: Access, *, now: datetime) -> Setup:
        """The configuration. Raises `CliError` for a policy that the options name, or that the local server wrote, and
        that is unavailable or invalid."""
        from vcbatch.cli.base.local_scheduler import local_scheduler
        from vcbatch.cli.files.plugin_files import load
        from vcbatch.scheduler.policy.text import effective

        local = local_scheduler(access) if self.lease is None else None
        extensions = load(self.plugins or (() if local is None else tuple(local.plugins)))
        named = await self._named(api, extensions)
        if local is not None:
            found = _left(local, extensions, now) if named is None else _started(replace(local.settings, taken=now))
        else:
            found = await self._published(api, extensions, now, policy_too=named is None)
        if named is not None:
            where = self.policy_file if self.configmap is None else f"ConfigMap {self.configmap}"
            found = Setup(settings=found.settings, policy=named, source=str(where))
        settings = replace(
            found.settings,
            # Without parts that may be secret.
            policy=effective(found.policy, metrics=False) if found.source else None,
            scheduler_names=self.names or found.settings.scheduler_names,
            default_queue=self.default_queue or found.settings.default_queue,
        )
        return replace(found, settings=settings)

    async def _named(self, api: Api, extensions: Extensions) -> Policy | None:
        from vcbatch.cli.files.policy_file import read_policy
        from vcbatch.runtime.configuration.followed_file import ConfigurationError
        from vcbatch.runtime.scheduling.policy_source import PolicyConfigMap
        from vcbatch.scheduler.framework.arguments import PolicyError
        from vcbatch.scheduler.policy.reader import parse_policy

        if self.policy_file is not None:
            return read_policy(self.policy_file, extensions=extensions)
        if self.configmap is None:
            return None
        try:
            return parse_policy(await PolicyConfigMap.parse(api, self.configmap).read(), extensions=extensions)
        except (ConfigurationError, PolicyError, ValueError) as error:
            raise CliError(f"--scheduler-configmap {self.configmap}: {error}") from error

    async def _published(self, api: Api, extensions: Extensions, now: datetime, *, policy_too: bool) -> Setup:
        """The configuration on the scheduler's Lease, with the policy only if `policy_too` is set."""
        from vcbatch.cli.whatif.scheduler_lease import LeasePlace, NotPublishedError, published
        from vcbatch.scheduler.framework.arguments import PolicyError
        from vcbatch.scheduler.policy.reader import parse_policy
        from vcbatch.scheduler.simulation.recording import Settings

        try:
            place = LeasePlace() if self.lease is None else LeasePlace.parse(self.lease)
        except ValueError as error:
            raise CliError(f"--scheduler-lease: {error}") from error
        settings = Settings(taken=now)
        try:
            found = await published(api, place, now=now)
            settings = found.notice.settings
            if not policy_too:
                return _started(settings)
            if settings.policy is None:
                raise NotPublishedError(f"the configuration in {found.notice.source} is too large for Lease {place}")
            policy = parse_policy(settings.policy, extensions=extensions)
        except PolicyError as error:
            first = error.errors[0].text.partition(";")[0]
            why = f"the configuration in Lease {place} can't be used: {first} (pass custom plugins with --plugin)"
        except NotPublishedError as error:
            why = str(error)
        else:
            source = found.notice.source or "built-in default"
            return Setup(settings=settings, policy=policy, source=source, lease=str(place), doubt=found.doubt)
        if self.lease is not None:
            raise CliError(f"--scheduler-lease {self.lease}: {why}")
        return replace(_started(settings), unknown=f"scheduler configuration unknown: {why}; {_NAME_IT}")


def _started(settings: Settings) -> Setup:
    """A configuration with an unknown policy."""
    from vcbatch.scheduler.policy.reader import default_policy

    return Setup(settings=settings, policy=default_policy())


def _left(local: LocalScheduler, extensions: Extensions, now: datetime) -> Setup:
    """The configuration that the local server wrote."""
    from vcbatch.scheduler.framework.arguments import PolicyError
    from vcbatch.scheduler.policy.reader import default_policy, parse_policy

    text, file = local.settings.policy, local.policy_file
    try:
        policy = default_policy() if text is None else parse_policy(text, extensions=extensions)
    except PolicyError as error:
        raise CliError(f"the scheduler configuration of `vcbatch up` can't be read: {error}") from error
    source = f"{'built-in default' if file is None else file} (vcbatch up)"
    return Setup(settings=replace(local.settings, taken=now), policy=policy, source=source)


def setup_options(function: F) -> F:
    """Give a command the options about the scheduler, as its argument `setup`."""

    @functools.wraps(function)
    def command(
        *arguments: Any,
        policy_file: Path | None,
        scheduler_configmap: str | None,
        scheduler_lease: str | None,
        plugins: tuple[Path, ...],
        scheduler_names: tuple[str, ...],
        default_queue: str | None,
        **others: Any,
    ) -> object:
        if policy_file is not None and scheduler_configmap is not None:
            raise click.UsageError("--policy and --scheduler-configmap are mutually exclusive")
        setup = SetupOptions(
            policy_file=policy_file,
            configmap=scheduler_configmap,
            lease=scheduler_lease,
            plugins=plugins,
            names=scheduler_names,
            default_queue=default_queue,
        )
        return function(*arguments, setup=setup, **others)

    wrapped: Callable[..., object] = command
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return cast("F", wrapped)


_ELSE = "[default: as published by the scheduler, else {}]"
_OPTIONS = (
    click.option(
        "--policy", "policy_file", type=_FILE, default=None, metavar="FILE",
        help="Scheduler configuration file.  [default: as published by the scheduler]",
    ),
    click.option(
        "--scheduler-configmap", default=None, metavar="NAMESPACE/NAME[:KEY]",
        help="ConfigMap with the scheduler configuration.",
    ),
    click.option(
        "--scheduler-lease", default=None, metavar="NAMESPACE/NAME",
        help="Lease on which the scheduler publishes its configuration and flags.  "
        f"[default: the local server, else {COMPONENTS_NAMESPACE}/{SCHEDULER_LEASE}]",
    ),
    click.option(
        "--plugin", "plugins", type=_FILE, multiple=True, metavar="FILE",
        help="Python file that defines custom scheduler PLUGINS or ACTIONS; may be repeated.",
    ),
    click.option(
        "--scheduler-name", "scheduler_names", multiple=True, metavar="SCHEDULER",
        help=f"schedulerName of the scheduler; may be repeated.  {_ELSE.format(DEFAULT_SCHEDULER)}",
    ),
    click.option(
        "--default-queue", default=None, metavar="QUEUE", shell_complete=queue_names,
        help=f"Queue of PodGroups without a queue.  {_ELSE.format('default')}",
    ),
)  # fmt: skip
