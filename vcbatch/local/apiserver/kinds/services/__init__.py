"""Services. Addresses are allocated as clients expect; local mode has no proxy that would serve them, and names of pods
resolve without one."""

from __future__ import annotations

from vcbatch.local.apiserver.kinds.services.entry import served

__all__ = ["served"]
