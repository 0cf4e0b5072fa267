"""The interfaces to the environment: `Clock`, `Api`, `Processes` and `Random`.

Code outside `core` and `scheduler` that performs I/O, reads the time or needs randomness receives an implementation of
them and never imports one. So the whole control plane can run in one process, under a virtual clock, from one seed,
with fault injection.
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
