"""The image, built once for all its tests; where it can't be built they are skipped, but fail in continuous
integration."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.processes import Guard
from tests.image.build import missing
from tests.image.containers import Image, image_archive
from tests.support.lacking import lacks


@pytest.fixture(scope="session")
def image() -> Image:
    if reason := missing():
        lacks(f"the image can't be built here: {reason}")
    return Image(image_archive())


@pytest.fixture(scope="session")
def guard() -> Iterator[Guard]:
    guard = Guard()
    yield guard
    guard.close()
