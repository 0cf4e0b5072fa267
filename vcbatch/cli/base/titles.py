"""The titles of objects in results, in kubectl's form."""

from __future__ import annotations

from vcbatch.api.resources import Resource


def qualified(resource: Resource) -> str:
    """The kind with its API group: `job.batch.volcano.sh`, `pod`."""
    kind = resource.kind.lower()
    return f"{kind}.{resource.group}" if resource.group else kind


def title(resource: Resource, name: str, *, namespace: str | None = None) -> str:
    """`job.batch.volcano.sh/train`, followed by `in NAMESPACE` where one is given."""
    return f"{qualified(resource)}/{name}{f' in {namespace}' if namespace else ''}"
