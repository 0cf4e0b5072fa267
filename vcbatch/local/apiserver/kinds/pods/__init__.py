"""Pods: defaults, admission, validation, updates, columns and subresources."""

from __future__ import annotations

from vcbatch.local.apiserver.kinds.pods.entry import served

__all__ = ["served"]
