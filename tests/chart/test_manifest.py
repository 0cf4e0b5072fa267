"""The one-file manifest is the chart with its defaults."""

from __future__ import annotations

import pytest

from helm import manifest
from tests.chart import helm as client


@pytest.mark.usefixtures("helm")
def test_the_manifest_is_up_to_date_with_the_chart() -> None:
    wanted = manifest.text(str(client.client()))
    assert manifest.MANIFEST.read_text(encoding="utf-8") == wanted, "run `make manifest`"
