"""`vcbatch install`: installs vcbatch on a cluster, without Helm and without a checkout."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from vcbatch.api.name_rules import dns_label
from vcbatch.api.names import COMPONENTS_NAMESPACE
from vcbatch.cli.base.access import Access, TimeoutType, cluster_access_options
from vcbatch.cli.base.output import CliError, note, say
from vcbatch.cli.base.terminal import terminal_of
from vcbatch.cli.install.manifest import ADMISSION, COMPONENTS, Choices, chosen, shipped
from vcbatch.cli.inventory.findings import Finding, Level, Purpose, findings
from vcbatch.cli.inventory.screen import findings_text, summary
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.runtime.clock import BlockingClock

if TYPE_CHECKING:
    from vcbatch.cli.inventory.model import Inventory
    from vcbatch.cli.inventory.read import PagedApi
    from vcbatch.runtime.client.rest import RestApi

Json = dict[str, Any]

_SETTINGS = "admission, components, crds and replicas"


class SettingType(click.ParamType):
    """`KEY=VALUE` for one of the known settings."""

    name = "KEY=VALUE"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        if isinstance(value, tuple):
            return value
        key, equals, given = str(value).partition("=")
        if not equals:
            self.fail(f"must be KEY=VALUE, got {value!r}", param, ctx)
        if key == "admission":
            return key, self._one_of(key, given, ADMISSION, param, ctx)
        if key == "components":
            return key, tuple(self._one_of(key, one, COMPONENTS, param, ctx) for one in given.split(","))
        if key == "crds":
            return key, self._one_of(key, given, ("install", "keep"), param, ctx) == "install"
        if key != "replicas":
            self.fail(
                f"unknown setting {key!r}: must be {_SETTINGS}; for other settings, use the Helm chart", param, ctx
            )
        if not (given.isascii() and given.isdigit() and 1 <= int(given[:4]) <= 10):
            self.fail(f"replicas: must be 1 to 10, got {given!r}", param, ctx)
        return key, int(given)

    def _one_of(
        self, key: str, given: str, known: tuple[str, ...], param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        if given not in known:
            self.fail(f"{key}: must be one of {', '.join(known)}, got {given!r}", param, ctx)
        return given


@click.command("install")
@click.option(
    "--namespace",
    "-n",
    "components",
    default=COMPONENTS_NAMESPACE,
    show_default=True,
    metavar="NAME",
    help="Namespace of the components.",
)
@click.option("--image", default="", metavar="IMAGE", help="Container image of all components, by tag or digest.")
@click.option(
    "--set", "settings", type=SettingType(), multiple=True,
    help="admission=webhooks|policies|none, components=LIST of controllers, scheduler and webhooks, "
    "crds=install|keep, replicas=N; may be repeated.",
)  # fmt: skip
@click.option(
    "--scheduler-name", "scheduler_names", multiple=True, metavar="NAME",
    help="schedulerName of the pods to schedule; may be repeated.  [default: volcano]",
)  # fmt: skip
@click.option(
    "--scheduler-conf", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
    help="Scheduler configuration file (Volcano's format).  [default: built-in]",
)  # fmt: skip
@click.option(
    "--node-selector", "node_selectors", multiple=True, metavar="KEY:VALUE",
    help="Schedule only on nodes with one of these labels; may be repeated.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print the changes of a server-side dry run.")
@click.option("--print", "only_print", is_flag=True, help="Print the manifest as YAML, without contacting the server.")
@click.option(
    "--force-conflicts",
    is_flag=True,
    help="Take ownership of objects and fields that another tool manages, such as CRDs of Volcano.",
)
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until all Deployments are available.")
@click.option("--timeout", type=TimeoutType(), default="5m", show_default=True, help="Timeout of --wait.")
@cluster_access_options
def command(
    access: Access,
    components: str,
    image: str,
    settings: tuple[tuple[str, Any], ...],
    scheduler_names: tuple[str, ...],
    scheduler_conf: Path | None,
    node_selectors: tuple[str, ...],
    dry_run: bool,
    only_print: bool,
    force_conflicts: bool,
    wait: bool,
    timeout: timedelta,
) -> int:
    """Install or upgrade vcbatch on a cluster, without Helm.

    The cluster is checked first; nothing is changed if a check fails. Objects are applied with server-side apply, as
    field manager vcbatch-install. Objects of an earlier installation that are no longer included are deleted, except
    CRDs and the namespace.
    """
    if dns_label(components):
        raise click.UsageError(f"--namespace: invalid namespace name {components!r}")
    choices = Choices(
        namespace=components,
        image=image,
        scheduler_names=scheduler_names,
        node_selectors=node_selectors,
        policy=_policy(scheduler_conf),
    )
    wanted = chosen(shipped(), replace(choices, **dict(settings)))
    if only_print:
        from vcbatch.api import yaml_writer

        say("---\n".join(yaml_writer.dump(one, width=110) for one in wanted), end="")
        return 0
    access.once(lambda api: _install(cast("RestApi", api), access, wanted, components, force_conflicts, dry_run))
    if wait and not dry_run:
        access.once(lambda api: _wait(cast("RestApi", api), wanted, timeout))
    return 0


def _policy(path: Path | None) -> str:
    """The text of a valid scheduler configuration; "" without a path. Raises `CliError` with the errors of an
    invalid one."""
    if path is None:
        return ""
    from vcbatch.cli.files.policy_file import policy_text, read_policy

    read_policy(path)
    return policy_text(path)


async def _install(
    api: RestApi, access: Access, wanted: list[Json], namespace: str, force: bool, dry_run: bool
) -> None:
    from vcbatch.api.resources import CRDS
    from vcbatch.cli.install.installer import Installer
    from vcbatch.cli.install.kinds import resource_of, title_of

    installer = Installer(api, BlockingClock(), force=force)
    inventory = await _inventory(api, access, namespace)
    if not force:
        inventory = replace(inventory, foreign=tuple(await installer.foreign(wanted)))
    _refuse(findings(inventory, access.now(), purpose=Purpose.INSTALL))
    await _refuse_second(api, namespace)
    refusals = await installer.refusals(wanted)
    if refusals:
        for one in refusals:
            note(f"{one.title}: {one.message}")
        hint = "Ask your cluster administrator for these permissions."
        if any(one.conflict for one in refusals):
            hint = "To take ownership of the fields, use --force-conflicts."
        count = len(refusals)
        raise CliError(f"{count} object{'' if count == 1 else 's'} rejected; nothing was changed", hint=hint)
    definitions = [one for one in wanted if resource_of(one) == CRDS]
    for number, obj in enumerate(wanted):
        try:
            change = await installer.apply(obj, dry_run=dry_run)
        except ApiError as error:
            if error.code in (0, 401):
                raise
            hint = f"{number} of {len(wanted)} objects were applied. Run the command again to continue."
            raise CliError(f"{title_of(obj)}: {error.sentence}", hint=hint) from error
        say(f"{title_of(obj)} {change}{' (server dry run)' if dry_run else ''}")
        if definitions and obj is definitions[-1] and not dry_run:
            await installer.wait_established(definitions)
    await _prune(api, wanted, dry_run)


async def _refuse_second(api: RestApi, namespace: str) -> None:
    """Raise `CliError` where `vcbatch install` has installed into another namespace: both installations would share the
    cluster-scoped objects, such as roles."""
    from vcbatch.api.resources import DEPLOYMENTS
    from vcbatch.cli.base.fields import namespace_of
    from vcbatch.cli.install.installer import INSTALLED

    try:
        found = (await api.list(DEPLOYMENTS, label_selector=INSTALLED)).items
    except ApiError as error:
        if error.code in (0, 401):
            raise
        return  # the dry run of each object reports the missing permissions
    there = next((namespace_of(one) for one in found if namespace_of(one) != namespace), "")
    if there:
        raise CliError(
            f"vcbatch is already installed in namespace {there}; nothing was changed",
            hint=f"Upgrade it with `vcbatch install --namespace {there}`, or remove it with `vcbatch uninstall "
            f"--namespace {there}`.",
        )


async def _prune(api: RestApi, wanted: list[Json], dry_run: bool) -> None:
    """Delete the objects of an earlier installation that this one doesn't have, such as webhooks without a server."""
    from vcbatch.cli.install.installer import installed, remove, superfluous
    from vcbatch.cli.install.kinds import title_of

    try:
        for resource, obj in superfluous(await installed(api), wanted):
            if not dry_run:
                await remove(api, resource, obj)
            say(f"{title_of(obj)} pruned{' (server dry run)' if dry_run else ''}")
    except ApiError as error:
        if error.code in (0, 401):
            raise
        note(f"warning: objects of an earlier installation were not pruned: {error.sentence}")


async def _inventory(api: RestApi, access: Access, namespace: str) -> Inventory:
    from vcbatch.cli.inventory.read import Reader

    reader = Reader(cast("PagedApi", api), version=api.version, now=access.now, components=namespace)
    return await reader.read()


def _refuse(found: list[Finding]) -> None:
    """Print warnings and blockers. Raises `CliError` where there is a blocker."""
    reported = [one for one in found if one.level is not Level.OK]
    if reported:
        note(findings_text(reported, terminal_of()))
    if any(one.level is Level.BLOCKER for one in reported):
        raise CliError(f"installation checks failed: {summary(reported)}", hint="Nothing was changed.")


async def _wait(api: RestApi, wanted: list[Json], timeout: timedelta) -> None:
    from vcbatch.cli.install.installer import Installer

    installer = Installer(api, BlockingClock(), force=False)
    await installer.wait_available(wanted, timeout.total_seconds(), note)


@click.command("uninstall")
@click.option("--dry-run", is_flag=True, help="Print what would be deleted, without deleting it.")
@click.option(
    "--namespace",
    "-n",
    "components",
    default=COMPONENTS_NAMESPACE,
    show_default=True,
    metavar="NAME",
    help="Namespace of the components.",
)
@cluster_access_options
def uninstall(access: Access, dry_run: bool, components: str) -> int:
    """Uninstall vcbatch. The CRDs and the namespace are kept, with all jobs, queues and pods."""

    async def work(api: Api) -> int:
        from vcbatch.cli.install.installer import installed, remove
        from vcbatch.cli.install.kinds import title_of

        found = await installed(cast("RestApi", api))
        for resource, obj in found:
            if not dry_run:
                await remove(cast("RestApi", api), resource, obj)
            say(f"{title_of(obj)} deleted{' (dry run)' if dry_run else ''}")
        if not dry_run:
            await _leases(api, components)
        return len(found)

    count = access.once(work)
    if not count:
        note(f"no installation by `vcbatch install` found; to remove a Helm release: helm uninstall -n {components}")
    else:
        note("CRDs, namespace, jobs and queues were kept")
    return 0


async def _leases(api: Api, namespace: str) -> None:
    """Delete the Leases that vcbatch's programs created."""
    from vcbatch.api.resources import LEASES

    try:
        found = (await api.list(LEASES, namespace=namespace)).items
    except ApiError as error:
        if error.code in (0, 401):
            raise
        return
    for lease in found:
        name = lease["metadata"]["name"]
        if name == "vcbatch-controllers" or name.startswith("vcbatch-scheduler"):
            await api.delete(LEASES, name, namespace=namespace, uid=lease["metadata"]["uid"])
            say(f"lease.coordination.k8s.io/{name} deleted")
