"""The image and containers of it, for the tests of other tiers as well."""

from __future__ import annotations

from tests.image.build import IMAGE, image_archive, missing

__all__ = ["IMAGE", "image_archive", "missing"]
