"""A sleep that an event can interrupt."""

from __future__ import annotations

from vcbatch.hosting.supervise import pause

__all__ = ["pause"]
