"""From "run this program on so many nodes" to the Job that does it. Pure: the same wish gives the same manifest."""

from vcbatch.sdk.compose.job import compose
from vcbatch.sdk.compose.request import Array, CannotCompose, Framework, JobRequest, Volume, VolumeKind

__all__ = ["Array", "CannotCompose", "Framework", "JobRequest", "Volume", "VolumeKind", "compose"]
