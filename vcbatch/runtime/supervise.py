"""Supervised parts of a component; `vcbatch.hosting.supervise` has them, for the local server and its kubelet too."""

from __future__ import annotations

from vcbatch.hosting.supervise import Part, PartFailedError, Supervisor, never

__all__ = ["Part", "PartFailedError", "Supervisor", "never"]
