"""Shared by every long-running program of vcbatch: supervised background tasks, and limits for its listeners."""
