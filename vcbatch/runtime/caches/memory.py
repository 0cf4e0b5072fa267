"""Settings of the garbage collector for a program with tens of thousands of objects."""

from __future__ import annotations

import gc


def settle() -> None:
    """Exclude all current objects from garbage collection, since they live as long as the program, and run it less
    often for the rest, which is short-lived or exempt. Its passes otherwise dominate the slowest responses."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
