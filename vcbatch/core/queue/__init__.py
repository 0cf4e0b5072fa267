"""The queue controller's decisions: `bootstrap` creates the built-in queues, `decide` maintains state and counts."""

from vcbatch.core.queue.bootstrap import bootstrap
from vcbatch.core.queue.decide import decide
from vcbatch.core.queue.view import QueueView

__all__ = ["QueueView", "bootstrap", "decide"]
