"""Commands without effect: the target doesn't exist, is no job or queue, or can't take Commands yet."""

from vcbatch.core.command.decide import decide

__all__ = ["decide"]
