"""The four interfaces to the world: `Clock`, `Api`, `Processes` and `Random`.

Everything above `core` and `scheduler` that touches the world is handed these and never imports an implementation.
So the whole control plane can run in one process, under a virtual clock, from one seed, with faults injected.
"""

from vcbatch.interfaces.api import Api, ApiError, Listing, PatchKind, StreamingApi, WatchEvent
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.processes import Processes, ProcessExit, ProcessRef, ProcessSpec
from vcbatch.interfaces.random import KeyPair, Random

__all__ = [
    "Api",
    "ApiError",
    "Clock",
    "KeyPair",
    "Listing",
    "PatchKind",
    "ProcessExit",
    "ProcessRef",
    "ProcessSpec",
    "Processes",
    "Random",
    "StreamingApi",
    "WatchEvent",
]
