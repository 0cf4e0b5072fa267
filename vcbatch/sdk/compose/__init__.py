"""Composes the Job that runs a program on a number of nodes. Pure: the same request gives the same manifest."""

from vcbatch.sdk.compose.job import compose
from vcbatch.sdk.compose.request import Array, CannotCompose, Framework, JobRequest, Volume, VolumeKind

__all__ = ["Array", "CannotCompose", "Framework", "JobRequest", "Volume", "VolumeKind", "compose"]
