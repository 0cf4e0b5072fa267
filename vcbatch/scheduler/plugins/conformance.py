"""Keeps the pods that a cluster itself needs from being evicted."""

from __future__ import annotations

from vcbatch.scheduler.plugins.base import Plugin


class Conformance(Plugin):
    """Has a say about victims only, so nothing to say while no action evicts."""
