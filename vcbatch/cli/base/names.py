"""Names of objects on the server, for completion. On any error there are no completions and no message, since the user
is typing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from vcbatch.api import resources
from vcbatch.api.resources import Resource

Offer = Callable[[click.Context, click.Parameter, str], Sequence[str]]

_MOST = 1000


def names_of(resource: Resource) -> Offer:
    """Completes the names of existing objects of a kind, without those that the argument has already."""

    def offer(ctx: click.Context, param: click.Parameter, incomplete: str) -> Sequence[str]:
        given = ctx.params.get(param.name or "")
        taken = set(given) if isinstance(given, tuple) else set()
        return [name for name in _names(resource, ctx) if name.startswith(incomplete) and name not in taken][:_MOST]

    return offer


job_names: Offer = names_of(resources.JOBS)
queue_names: Offer = names_of(resources.QUEUES)
flow_names: Offer = names_of(resources.JOBFLOWS)
template_names: Offer = names_of(resources.JOBTEMPLATES)
cron_names: Offer = names_of(resources.CRONJOBS)
pod_names: Offer = names_of(resources.PODS)
hypernode_names: Offer = names_of(resources.HYPERNODES)
namespace_names: Offer = names_of(resources.NAMESPACES)
priority_class_names: Offer = names_of(resources.PRIORITYCLASSES)


def _names(resource: Resource, ctx: click.Context) -> Sequence[str]:
    """The names, sorted; in the namespace that the command would use."""
    from vcbatch.cli.base.known_names import known_names
    from vcbatch.cli.base.reach import Access

    access = Access(
        kubeconfig=ctx.params.get("kubeconfig"),
        context=ctx.params.get("context"),
        chosen_namespace=ctx.params.get("namespace"),
    )
    try:
        return known_names(access.connection(), resource, namespace=access.namespace)
    except Exception:
        return ()
