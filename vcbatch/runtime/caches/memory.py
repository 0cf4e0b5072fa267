"""What a program that holds tens of thousands of objects tells the garbage collector."""

from __future__ import annotations

import gc


def settle() -> None:
    """What lives now lives as long as the program: the collector needn't look at it again, nor look often at the rest,
    which is short-lived or exempt. Its passes are what the slowest answers otherwise wait for."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
