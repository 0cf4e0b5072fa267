"""Where the recorded conformance data is; None in a checkout that comes without it."""

from __future__ import annotations

from pathlib import Path

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "conformance"

DATA: Path | None = _BESIDE if _BESIDE.is_dir() else None
