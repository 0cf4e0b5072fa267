"""The CustomResourceDefinitions of every kind, generated from the models: `render` one, or all `documents` as YAML."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from vcbatch.api import resources, yaml_writer
from vcbatch.api.colocation import ColocationConfiguration
from vcbatch.api.command import Command
from vcbatch.api.crd.derive import object_schema
from vcbatch.api.cronjob import CronJob
from vcbatch.api.hypernode import HyperNode
from vcbatch.api.job import Job
from vcbatch.api.jobflow import JobFlow
from vcbatch.api.jobtemplate import JobTemplate
from vcbatch.api.model import Json, Object
from vcbatch.api.node_shard import NodeShard
from vcbatch.api.numatopology import Numatopology
from vcbatch.api.podgroup import PodGroup
from vcbatch.api.queue import Queue
from vcbatch.api.resources import Resource

__all__ = ["LARGEST_DOCUMENT", "documents", "render", "render_all"]

LARGEST_DOCUMENT: Final = 256 * 1024
"""The maximum size in bytes of an annotation, in which client-side `kubectl apply` keeps the last document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    name: str
    path: str
    type: str = "string"
    priority: int = 0

    def render(self) -> Json:
        column: Json = {"name": self.name, "type": self.type, "jsonPath": self.path}
        if self.priority:
            column["priority"] = self.priority
        return column


@dataclass(frozen=True, slots=True, kw_only=True)
class _Definition:
    """`status` says whether status is a subresource; None: the CRD has no subresources at all."""

    resource: Resource
    model: type[Object]
    description: str
    short_names: tuple[str, ...] = ()
    status: bool | None = True
    columns: tuple[_Column, ...] = ()


_CREATED: Final = ".metadata.creationTimestamp"

_DEFINITIONS: Final = (
    _Definition(
        resource=resources.JOBS,
        model=Job,
        description="Job is a gang of pods in one or more tasks, run to completion.",
        short_names=("vcjob", "vj"),
        columns=(
            _Column(name="STATUS", path=".status.state.phase"),
            _Column(name="minAvailable", path=".status.minAvailable", type="integer"),
            _Column(name="RUNNINGS", path=".status.running", type="integer"),
            _Column(name="AGE", path=_CREATED, type="date"),
            _Column(name="QUEUE", path=".spec.queue", priority=1),
        ),
    ),
    _Definition(
        resource=resources.CRONJOBS,
        model=CronJob,
        description="CronJob makes Jobs on a schedule.",
        short_names=("cronvcjob", "cronvj"),
    ),
    _Definition(
        resource=resources.COMMANDS,
        model=Command,
        description="Command asks a controller to do something to a Job or a Queue, once.",
        status=None,
    ),
    _Definition(
        resource=resources.QUEUES,
        model=Queue,
        description="Queue says who may use how much of the cluster.",
        short_names=("q", "queue-v1beta1"),
        columns=(_Column(name="PARENT", path=".spec.parent"),),
    ),
    _Definition(
        resource=resources.PODGROUPS,
        model=PodGroup,
        description="PodGroup is a gang of pods: all of its minimum is placed, or none.",
        short_names=("pg", "podgroup-v1beta1"),
        status=False,
        columns=(
            _Column(name="STATUS", path=".status.phase"),
            _Column(name="minMember", path=".spec.minMember", type="integer"),
            _Column(name="RUNNINGS", path=".status.running", type="integer"),
            _Column(name="AGE", path=_CREATED, type="date"),
            _Column(name="QUEUE", path=".spec.queue", priority=1),
        ),
    ),
    _Definition(
        resource=resources.JOBFLOWS,
        model=JobFlow,
        description="JobFlow makes Jobs from JobTemplates in the order of a graph.",
        short_names=("jf",),
        columns=(
            _Column(name="Status", path=".status.state.phase"),
            _Column(name="Age", path=_CREATED, type="date"),
        ),
    ),
    _Definition(
        resource=resources.JOBTEMPLATES,
        model=JobTemplate,
        description="JobTemplate keeps the spec of a Job for JobFlows.",
        short_names=("jt",),
    ),
    _Definition(
        resource=resources.HYPERNODES,
        model=HyperNode,
        description="HyperNode is a set of nodes that are near each other in the network.",
        short_names=("hn",),
        columns=(
            _Column(name="Tier", path=".spec.tier"),
            _Column(name="TierName", path=".spec.tierName"),
            _Column(name="NodeCount", path=".status.nodeCount", type="integer"),
            _Column(name="Age", path=_CREATED, type="date"),
        ),
    ),
    _Definition(
        resource=resources.NODESHARDS,
        model=NodeShard,
        description="NodeShard says which nodes are for the scheduler of its name.",
        short_names=("nsh",),
        columns=(_Column(name="AGE", path=_CREATED, type="date"),),
    ),
    _Definition(
        resource=resources.COLOCATIONCONFIGURATIONS,
        model=ColocationConfiguration,
        description="ColocationConfiguration says how the memory of pods is guarded that share a node with others.",
    ),
    _Definition(
        resource=resources.NUMATOPOLOGIES,
        model=Numatopology,
        description="Numatopology says which cpus a node has, and which are free for one container alone.",
        short_names=("numatopo",),
        status=None,
    ),
)
_BY_KIND: Final = {definition.resource.kind: definition for definition in _DEFINITIONS}


@cache
def render(kind: str) -> Json:
    """The CustomResourceDefinition of a kind (`Job`, `Queue`, …). Parts are shared between kinds: don't modify them.
    Raises KeyError for an unknown kind."""
    definition = _BY_KIND[kind]
    resource = definition.resource
    version: Json = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"description": definition.description, **object_schema(definition.model)}},
    }
    if definition.columns:
        version["additionalPrinterColumns"] = [column.render() for column in definition.columns]
    if definition.status is not None:
        version["subresources"] = {"status": {}} if definition.status else {}
    names: Json = {"kind": kind, "listKind": f"{kind}List", "plural": resource.plural, "singular": kind.lower()}
    if definition.short_names:
        names["shortNames"] = list(definition.short_names)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "names": names,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [version],
        },
    }


def render_all() -> list[Json]:
    """Every definition, in the order of `resources.CUSTOM_RESOURCES`."""
    return [render(resource.kind) for resource in resources.CUSTOM_RESOURCES]


def documents() -> dict[str, str]:
    """The YAML text of every definition by file name, each smaller than `LARGEST_DOCUMENT`."""
    return {
        f"{definition['metadata']['name']}.yaml": yaml_writer.dump(
            definition, width=1_000_000, flow=None, ascii_only=True
        )
        for definition in render_all()
    }
