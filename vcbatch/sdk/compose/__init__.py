"""From "run this program on so many nodes" to the Job that does it. Pure: the same wish gives the same manifest."""

from vcbatch.sdk.compose.job import compose
from vcbatch.sdk.compose.wish import Array, CannotCompose, Framework, Volume, VolumeKind, Wish

__all__ = ["Array", "CannotCompose", "Framework", "Volume", "VolumeKind", "Wish", "compose"]
