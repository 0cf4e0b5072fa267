"""How a user adds a missing part of vcbatch to an installation.

vcbatch isn't published on a package index, so that the commands name a checkout.
"""

from __future__ import annotations


def pip_install(extra: str = "") -> str:
    """The command that installs the package from a checkout, with an extra where one is given."""
    return f"pip install '.[{extra}]'" if extra else "pip install ."


def how_to_install(extra: str = "") -> str:
    """One sentence for a hint: the command, and where it works."""
    return f"In a checkout of vcbatch: {pip_install(extra)}"
