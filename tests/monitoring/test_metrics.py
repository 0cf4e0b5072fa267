"""Prometheus reads the scrape of all metrics, and finds nothing in our names that its conventions advise against."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.metric_names import scrape_of_all


def test_promtool_accepts_the_scrape_and_our_names(promtool: Path) -> None:
    done = subprocess.run(
        [promtool, "check", "metrics"], input=scrape_of_all(), capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 3), done.stderr  # 3: the text is valid, and there is advice about names
    advice = done.stderr.splitlines()
    assert advice, "Volcano's names don't follow the conventions"
    assert [line for line in advice if not line.startswith("volcano_")] == []
