"""Waiting that something may cut short."""

from __future__ import annotations

from vcbatch.hosting.supervise import pause

__all__ = ["pause"]
