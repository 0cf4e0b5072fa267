"""The same examples in each run of the same commit.

Hypothesis mixes constants of the program's source into its examples, from those modules that happen to be imported.
Which these are depends on the tests that ran before in the same process, so all of them are imported before the first
test.
"""

from __future__ import annotations

import importlib
import pkgutil

import vcbatch
import webhooks


def import_all_modules() -> None:
    for package in (vcbatch, webhooks):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(".__main__"):
                importlib.import_module(module.name)
