"""Commands that nobody takes: their target is gone, is no job or queue, or can't be commanded yet."""

from vcbatch.core.command.decide import decide

__all__ = ["decide"]
