"""How the scheduler of a cluster is set up: as options say, or as the server of this machine left it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from vcbatch.api.names import DEFAULT_SCHEDULER
from vcbatch.cli.completion.names import queue_names
from vcbatch.cli.output import CliError

if TYPE_CHECKING:
    from vcbatch.cli.reach import Access
    from vcbatch.scheduler.policy.policy import Extensions, Policy
    from vcbatch.scheduler.simulation.recording import Settings
    from vcbatch.seams.api import Api

F = TypeVar("F", bound=Callable[..., object])
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A scheduler as it was started. `source` names its policy for people; empty where nobody did, so that the built-in
    one stands for it."""

    settings: Settings
    policy: Policy
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupOptions:
    """What options say of the scheduler; what they leave open is as the server of this machine has it."""

    policy_file: Path | None = None
    configmap: str | None = None
    plugins: tuple[Path, ...] = ()
    names: tuple[str, ...] = ()
    default_queue: str | None = None

    async def read(self, api: Api, access: Access, *, now: datetime) -> Setup:
        """Raises `CliError` for a policy that can't be had, or used."""
        from vcbatch.cli.local_scheduler import local_scheduler
        from vcbatch.cli.plugin_files import load
        from vcbatch.scheduler.policy.policy import Policy, PolicyError
        from vcbatch.scheduler.simulation.recording import Settings

        local = local_scheduler(access)
        extensions = load(self.plugins or (() if local is None else tuple(local.plugins)))
        policy = await self._named(api, extensions)
        settings = Settings(taken=now) if local is None else replace(local.settings, taken=now)
        source = "" if policy is None else self._source
        if policy is None and local is not None:
            file = local.policy_file
            source = f"the policy of vcbatch up, {'built in' if file is None else file}"
            try:
                text = settings.policy
                policy = None if text is None else Policy.parse(text, extensions=extensions)
            except PolicyError as error:
                raise CliError(f"the policy of vcbatch up can't be read again: {error}") from error
        return Setup(settings=self._over(settings, policy), policy=policy or Policy.default(), source=source)

    @property
    def _source(self) -> str:
        return f"the policy in {self.policy_file if self.configmap is None else f'ConfigMap {self.configmap}'}"

    def _over(self, settings: Settings, policy: Policy | None) -> Settings:
        from vcbatch.scheduler.policy.text import effective

        return replace(
            settings,
            # Without the section with passwords.
            policy=None if policy is None else effective(policy, metrics=False),
            scheduler_names=self.names or settings.scheduler_names,
            default_queue=self.default_queue or settings.default_queue,
        )

    async def _named(self, api: Api, extensions: Extensions) -> Policy | None:
        from vcbatch.cli.policy_file import read_policy
        from vcbatch.runtime.configuration.followed_file import ConfigurationError
        from vcbatch.runtime.scheduling.policy_source import PolicyConfigMap
        from vcbatch.scheduler.policy.policy import Policy, PolicyError

        if self.policy_file is not None:
            return read_policy(self.policy_file, extensions=extensions)
        if self.configmap is None:
            return None
        try:
            return Policy.parse(await PolicyConfigMap.parse(api, self.configmap).read(), extensions=extensions)
        except (ConfigurationError, PolicyError, ValueError) as error:
            raise CliError(f"--scheduler-configmap {self.configmap}: {error}") from error


def setup_options(function: F) -> F:
    """Give a command the options that say how the scheduler is set up, as its argument `setup`."""

    @functools.wraps(function)
    def command(
        *arguments: Any,
        policy_file: Path | None,
        scheduler_configmap: str | None,
        plugins: tuple[Path, ...],
        scheduler_names: tuple[str, ...],
        default_queue: str | None,
        **others: Any,
    ) -> object:
        if policy_file is not None and scheduler_configmap is not None:
            raise click.UsageError("--policy and --scheduler-configmap exclude each other")
        setup = SetupOptions(
            policy_file=policy_file,
            configmap=scheduler_configmap,
            plugins=plugins,
            names=scheduler_names,
            default_queue=default_queue,
        )
        return function(*arguments, setup=setup, **others)

    wrapped: Callable[..., object] = command
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return cast("F", wrapped)


_OF_UP = "[default: what `vcbatch up` uses on this machine, else {}]"
_OPTIONS = (
    click.option(
        "--policy", "policy_file", type=_FILE, default=None, metavar="FILE",
        help="The scheduler's policy file; needn't be named for `vcbatch up` on this machine.",
    ),
    click.option(
        "--scheduler-configmap", default=None, metavar="NAMESPACE/NAME[:KEY]",
        help="ConfigMap with the scheduler's policy.",
    ),
    click.option(
        "--plugin", "plugins", type=_FILE, multiple=True, metavar="FILE",
        help="Python file with PLUGINS or ACTIONS of your own, which the policy may name; may be repeated.",
    ),
    click.option(
        "--scheduler-name", "scheduler_names", multiple=True, metavar="SCHEDULER",
        help=f"The scheduler's schedulerName; may be repeated.  {_OF_UP.format(DEFAULT_SCHEDULER)}",
    ),
    click.option(
        "--default-queue", default=None, metavar="QUEUE", shell_complete=queue_names,
        help=f"The scheduler's queue of PodGroups that name none.  {_OF_UP.format('default')}",
    ),
)  # fmt: skip
