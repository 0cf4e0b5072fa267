"""The same examples in each run of the same commit.

Hypothesis uses constants from the source of imported local modules in its examples. Which modules are imported depends
on earlier tests in the process, so all of them are imported before the first test.
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
