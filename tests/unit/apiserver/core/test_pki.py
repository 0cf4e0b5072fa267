"""Certificates that a start left unfinished are made anew."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from vcbatch.local.apiserver.pki import Pki

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("name", ["ca.key", "server.key", "client.key"])
def test_a_key_of_another_certificate_is_replaced(tmp_path: Path, name: str) -> None:
    """A start wrote the new key, and was killed before it wrote the certificate."""
    Pki(tmp_path / "pki", NOW)
    Pki(tmp_path / "other", NOW)
    shutil.copy(tmp_path / "other" / name, tmp_path / "pki" / name)
    pki = Pki(tmp_path / "pki", NOW)
    assert pki.server_context().cert_store_stats()["x509_ca"] == 1
    assert Pki(tmp_path / "pki", NOW).ca_certificate == pki.ca_certificate


def test_what_is_whole_stays_as_it_is(tmp_path: Path) -> None:
    first = Pki(tmp_path / "pki", NOW)
    before = {path.name: path.read_bytes() for path in (tmp_path / "pki").iterdir()}
    second = Pki(tmp_path / "pki", NOW)
    assert second.token == first.token
    assert {path.name: path.read_bytes() for path in (tmp_path / "pki").iterdir()} == before
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "pki").iterdir())
