"""A control plane that the tests of a module share until one of them is tried again."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from tests.cluster.binaries.build import Binaries
from tests.cluster.controlplane import ControlPlane, Options


class Afresh:
    """Control planes with the project's CRDs, one at a time. A test that is tried again gets a new one: what its first
    try left behind would fail the second too."""

    def __init__(self, folders: pytest.TempPathFactory, name: str, binaries: Binaries, options: Options) -> None:
        self._folders = folders
        self._name = name
        self._binaries = binaries
        self._options = options
        self._plane: ControlPlane | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def plane(self, request: pytest.FixtureRequest) -> ControlPlane:
        """For the test that asks."""
        if getattr(request.node, "execution_count", 1) > 1:
            self._stop()
        if self._plane is None:
            folder: Path = self._folders.mktemp(self._name)
            self._plane = ControlPlane(folder, self._binaries, self._options)
            self._plane.start()
            self._plane.install_crds()
        return self._plane

    def _stop(self) -> None:
        if self._plane is not None:
            self._plane.stop()
            self._plane = None
