"""The best mode that works is taken; one that is asked for and doesn't work is an error."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from vcbatch.local.kubelet.sandbox import NSS_WRAPPER_VARIABLE, Mode, Namespaces, SandboxUnavailableError, choose

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="namespaces are Linux's")


def machine(*possible: Namespaces):
    async def probe(wanted: Namespaces) -> bool:
        return wanted in possible

    return probe


ROOTLESS = Namespaces(mount=True, user=True, pid=True)
WITHOUT_PROC = Namespaces(mount=True, user=True)


@pytest.fixture(autouse=True)
def no_wrapper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(NSS_WRAPPER_VARIABLE, str(tmp_path / "libnss_wrapper.so"))


@pytest.mark.parametrize(
    ("possible", "want"),
    [
        ((ROOTLESS, WITHOUT_PROC), (Mode.USERNS, ROOTLESS)),
        ((WITHOUT_PROC,), (Mode.USERNS, WITHOUT_PROC)),
        ((), (Mode.PLAIN, Namespaces())),
    ],
)
async def test_the_best_that_works(possible: tuple[Namespaces, ...], want: tuple[Mode, Namespaces]) -> None:
    sandbox = await choose(wanted=None, probe=machine(*possible))
    assert (sandbox.mode, sandbox.namespaces) == want
    assert sandbox.message


async def test_libnss_wrapper_is_better_than_nothing(tmp_path: Path) -> None:
    library = tmp_path / "libnss_wrapper.so"
    library.touch()
    sandbox = await choose(wanted=None, probe=machine())
    assert (sandbox.mode, sandbox.nss_wrapper) == (Mode.NSS, library)


@pytest.mark.parametrize("mode", [Mode.USERNS, Mode.NSS])
async def test_what_is_asked_for_and_impossible_is_refused(mode: Mode) -> None:
    with pytest.raises(SandboxUnavailableError, match=f"mode {mode}: "):
        await choose(wanted=mode, probe=machine())
