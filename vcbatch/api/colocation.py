"""ColocationConfigurations (`config.volcano.sh/v1alpha1`): how the memory of pods that share a node with others is
guarded. Volcano's node agent does it; here its pods are told."""

from __future__ import annotations

from pydantic import Field

from vcbatch.api.model import Json, Model, Object


class MemoryQos(Model):
    """Percentages: of the limit from which the kernel slows a pod down, and of the request that it doesn't or hardly
    takes back."""

    high_ratio: int = 100
    low_ratio: int = 0
    min_ratio: int = 0


class ColocationConfigurationSpec(Model):
    """Without a `selector` it is about no pod, with an empty one about all of its namespace."""

    selector: Json | None = None
    memory_qos: MemoryQos | None = None


class ColocationConfigurationStatus(Model):
    conditions: list[Json] = Field(default_factory=list[Json])


class ColocationConfiguration(Object):
    spec: ColocationConfigurationSpec = Field(default_factory=ColocationConfigurationSpec)
    status: ColocationConfigurationStatus = Field(default_factory=ColocationConfigurationStatus)
