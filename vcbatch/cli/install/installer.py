"""Applies the objects of an installation in order, and waits until its programs work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from vcbatch.api.resources import CRDS, DEPLOYMENTS, NAMESPACES, PODS, Resource
from vcbatch.cli.base.fields import dig, name_of, namespace_of, number, objects, text, words
from vcbatch.cli.base.output import CliError
from vcbatch.cli.install.kinds import KEPT, ORDER, resource_of, title_of
from vcbatch.cli.inventory.programs import INSTALLER, MANAGED_BY, owner_of
from vcbatch.interfaces.api import ApiError
from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.client.rest import RestApi

Json = dict[str, Any]

MANAGER: Final = INSTALLER
"""The field manager of all objects that are applied."""
INSTALLED: Final = f"{MANAGED_BY}={INSTALLER}"
"""The label selector of all objects that are applied."""
_PAUSE: Final = 1.0
_ESTABLISH_SECONDS: Final = 60.0
_WAITING: Final = frozenset({"ContainerCreating", "PodInitializing"})
"""Waiting reasons of a container that starts without intervention."""


class Change(StrEnum):
    """The change of an object, in kubectl's words."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why an object would be rejected. `conflict`: another manager owns fields of it."""

    title: str
    message: str
    conflict: bool = False


class Installer:
    """One run of `vcbatch install`."""

    def __init__(self, api: RestApi, clock: Clock, *, force: bool) -> None:
        """`force` takes over fields that other managers own."""
        self._api = api
        self._clock = clock
        self._force = force

    # Checks

    async def foreign(self, wanted: Sequence[Json]) -> list[str]:
        """The existing objects that another tool manages, as `TITLE (TOOL)`. Those that may not be read are left to
        `refusals`."""
        found: list[str] = []
        for obj in wanted:
            try:
                stored = await self._stored(obj)
            except ApiError as error:
                if error.code != 403:
                    raise
                continue
            if stored is None:
                continue
            owner = owner_of(stored)
            if owner.tool in ("Helm", "Argo CD", "Flux"):
                found.append(f"{title_of(obj)} ({owner})")
        return found

    async def refusals(self, wanted: Sequence[Json]) -> list[Refusal]:
        """Why objects would be rejected, found out by a dry run of each. An object isn't reported because its namespace
        or kind is yet to be created."""
        created = {name_of(one) for one in wanted if resource_of(one) == NAMESPACES}
        found: list[Refusal] = []
        for obj in wanted:
            try:
                await self._stored(obj)  # `apply` compares with it
                await self._apply(obj, dry_run=True)
            except ApiError as error:
                if error.transient or error.code == 401:
                    raise
                if error.not_found and namespace_of(obj) in created:
                    continue
                found.append(Refusal(title=title_of(obj), message=_message_of(error), conflict=error.conflict))
        return found

    # Changes

    async def apply(self, obj: Json, *, dry_run: bool = False) -> Change:
        """Apply the object and return what changed. Raises `ApiError`."""
        before = await self._stored(obj)
        try:
            after = await self._apply(obj, dry_run=dry_run)
        except ApiError as error:
            if dry_run and error.not_found and before is None:
                return Change.CREATED  # in a namespace that a dry run doesn't create
            raise
        if before is None:
            return Change.CREATED
        return Change.UNCHANGED if _same(before, after) else Change.CONFIGURED

    async def _apply(self, obj: Json, *, dry_run: bool) -> Json:
        resource = resource_of(obj)
        namespace = namespace_of(obj) or None
        return await self._api.apply(
            resource, obj, manager=MANAGER, namespace=namespace, force=self._force, dry_run=dry_run
        )

    async def _stored(self, obj: Json) -> Json | None:
        try:
            return await self._api.get(resource_of(obj), name_of(obj), namespace=namespace_of(obj) or None)
        except ApiError as error:
            if not error.not_found:
                raise
            return None

    # Waiting

    async def wait_established(self, wanted: Sequence[Json], timeout: float = _ESTABLISH_SECONDS) -> None:
        """Return once the server serves the kinds. Raises `CliError` after the timeout, in seconds."""
        until = self._clock.monotonic() + timeout
        for obj in (one for one in wanted if resource_of(one) == CRDS):
            while True:
                stored = await self._api.get(CRDS, name_of(obj))
                conditions = {text(one, "type"): one for one in objects(stored, "status", "conditions")}
                if text(conditions.get("Established", {}), "status") == "True":
                    break
                refused = conditions.get("NamesAccepted", {})
                if text(refused, "status") == "False":
                    raise CliError(
                        f"crd/{name_of(obj)} was not accepted: {text(refused, 'message')}",
                        hint="Its names conflict with another CRD.",
                    )
                if self._clock.monotonic() >= until:
                    raise CliError(
                        f"crd/{name_of(obj)} timed out after {timeout:.0f} s waiting to be established",
                        hint=f"See: kubectl describe crd {name_of(obj)}",
                    )
                await self._clock.sleep(_PAUSE)

    async def wait_available(self, wanted: Sequence[Json], timeout: float, report: Callable[[str], None]) -> None:
        """Return once all Deployments are available in their new revision; the condition that is waited for is reported
        when it changes. Raises `CliError` with the state of their pods after the timeout, in seconds."""
        until = self._clock.monotonic() + timeout
        for obj in (one for one in wanted if resource_of(one) == DEPLOYMENTS):
            said = ""
            while True:
                stored = await self._api.get(DEPLOYMENTS, name_of(obj), namespace=namespace_of(obj))
                waits = rollout(stored)
                if not waits:
                    report(f'deployment "{name_of(obj)}" successfully rolled out')
                    break
                if waits != said:
                    report(waits)
                    said = waits
                if self._clock.monotonic() >= until:
                    why = await self._why(stored)
                    raise CliError(
                        f"{title_of(obj)} timed out after {timeout:.0f} s waiting to be "
                        f"available{f': {why}' if why else ''}",
                        hint=f"See: kubectl describe pods -n {namespace_of(obj)} -l {_selector(stored)}",
                    )
                await self._clock.sleep(_PAUSE)

    async def _why(self, deployment: Json) -> str:
        """Why the pods of a Deployment aren't ready, as far as they may be read."""
        try:
            pods = await self._api.list(PODS, namespace=namespace_of(deployment), label_selector=_selector(deployment))
        except ApiError:
            return ""
        if not pods.items:
            failures = [text(one, "message") for one in objects(deployment, "status", "conditions")
                        if text(one, "type") == "ReplicaFailure"]  # fmt: skip
            return next(iter(failures), "no pods")
        return next((why for pod in pods.items for why in _reasons(pod)), "")


def rollout(deployment: Json) -> str:
    """The progress of a Deployment in the words of `kubectl rollout status`; empty where it is available."""
    name, wanted = name_of(deployment), dig(deployment, "spec", "replicas")
    wanted = wanted if isinstance(wanted, int) else 1
    if number(deployment, "status", "observedGeneration") < number(deployment, "metadata", "generation"):
        return f'Waiting for deployment "{name}" spec update to be observed...'
    updated, available = (
        number(deployment, "status", "updatedReplicas"),
        number(deployment, "status", "availableReplicas"),
    )
    head = f'Waiting for deployment "{name}" rollout to finish'
    if updated < wanted:
        return f"{head}: {updated} out of {wanted} new replicas have been updated..."
    if (old := number(deployment, "status", "replicas") - updated) > 0:
        return f"{head}: {old} old replicas are pending termination..."
    if available < updated:
        return f"{head}: {available} of {updated} updated replicas are available..."
    return ""


def _reasons(pod: Json) -> Iterator[str]:
    for one in objects(pod, "status", "containerStatuses"):
        reason = text(one, "state", "waiting", "reason")
        if reason and reason not in _WAITING:
            yield f"{name_of(pod)}: {reason}: {text(one, 'state', 'waiting', 'message')[:200]}"
    for one in objects(pod, "status", "conditions"):
        if text(one, "type") == "PodScheduled" and text(one, "status") == "False":
            yield f"{name_of(pod)}: {text(one, 'message')[:200]}"


def _selector(deployment: Json) -> str:
    labels = words(deployment, "spec", "selector", "matchLabels")
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _same(before: Json, after: Json) -> bool:
    """Whether an apply changed nothing, apart from `managedFields`, which a first apply adds."""
    return _without_record(before) == _without_record(after)


def _without_record(obj: Json) -> Json:
    dropped = ("managedFields", "resourceVersion", "generation")
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key not in dropped}}


def _message_of(error: ApiError) -> str:
    causes = error.details.get("causes")
    fields = [f"{text(one, 'field')} ({text(one, 'message')})" for one in causes if isinstance(one, dict)] if (
        error.conflict and isinstance(causes, list)
    ) else []  # fmt: skip
    if not fields:
        return error.sentence
    more = f" and {len(fields) - 5} more" if len(fields) > 5 else ""
    return f"conflicts with other field managers: {', '.join(fields[:5])}{more}"


# -- removal ----------------------------------------------------------------------------------------------------------


def superfluous(found: Sequence[tuple[Resource, Json]], wanted: Sequence[Json]) -> list[tuple[Resource, Json]]:
    """The objects from `installed` that the wanted installation doesn't have any more."""
    names = {(resource_of(one).kind, namespace_of(one), name_of(one)) for one in wanted}
    return [(resource, one) for resource, one in found if (resource.kind, namespace_of(one), name_of(one)) not in names]


async def remove(api: RestApi, resource: Resource, obj: Json) -> None:
    """Delete an object unless it is already deleted or another one has its name by now. Raises `ApiError`."""
    try:
        await api.delete(
            resource, name_of(obj), namespace=namespace_of(obj) or None, uid=text(obj, "metadata", "uid"),
            propagation="Background",
        )  # fmt: skip
    except ApiError as error:
        if not (error.not_found or error.conflict):
            raise


async def installed(api: RestApi) -> list[tuple[Resource, Json]]:
    """The objects that `vcbatch install` created, found by their label, with apiVersion and kind, in the order of their
    removal: admission first. CRDs and the namespace aren't included."""
    found: list[tuple[Resource, Json]] = []
    for resource in reversed(ORDER):
        if resource in KEPT:
            continue
        try:
            listing = await api.list(resource, label_selector=INSTALLED)
        except ApiError as error:
            if not error.not_found:
                raise
            continue
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        found += ((resource, {**one, **kind}) for one in listing.items)
    return found
