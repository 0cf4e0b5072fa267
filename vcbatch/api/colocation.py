"""ColocationConfigurations (`config.volcano.sh/v1alpha1`): memory protection of pods that share a node with others.
Volcano's node agent applies it; vcbatch records it on the pods."""

from __future__ import annotations

from pydantic import Field

from vcbatch.api.model import Json, Model, Object


class MemoryQos(Model):
    """Percentages: of the limit, above which the kernel throttles the pod, and of the request, below which it reclaims
    no or hardly any memory of the pod."""

    high_ratio: int = 100
    low_ratio: int = 0
    min_ratio: int = 0


class ColocationConfigurationSpec(Model):
    """Without a `selector` it applies to no pod, with an empty one to all of its namespace."""

    selector: Json | None = None
    memory_qos: MemoryQos | None = None


class ColocationConfigurationStatus(Model):
    conditions: list[Json] = Field(default_factory=list[Json])


class ColocationConfiguration(Object):
    spec: ColocationConfigurationSpec = Field(default_factory=ColocationConfigurationSpec)
    status: ColocationConfigurationStatus = Field(default_factory=ColocationConfigurationStatus)
