"""The file of resource groups, followed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.virtual_time import VirtualClock
from vcbatch.api.admission import Settings
from vcbatch.runtime.configuration.followed_file import ConfigurationError
from webhooks.settings import FollowedSettings

GPU = "resourceGroups:\n- resourceGroup: gpu\n  labels: {type: gpu}\n"


def followed(file: Path | None) -> FollowedSettings:
    return FollowedSettings(Settings(schedulers=("mine",)), file, clock=VirtualClock())


def test_without_a_file_there_are_no_groups() -> None:
    settings = followed(None)
    settings.refresh()
    assert settings.current() == Settings(schedulers=("mine",))


def test_a_changed_file_holds_from_the_next_look_on(tmp_path: Path) -> None:
    file = tmp_path / "conf"
    file.write_text("")
    settings = followed(file)
    assert settings.current().resource_groups == ()
    file.write_text(GPU)
    settings.refresh()
    assert [group.name for group in settings.current().resource_groups] == ["gpu"]
    assert settings.current().schedulers == ("mine",)


def test_a_broken_file_is_told_once_and_the_last_good_one_holds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "conf"
    file.write_text(GPU)
    settings = followed(file)
    file.write_text("resourceGroups: 7")
    for _ in range(3):
        settings.refresh()
    assert caplog.text.count("keeping the last valid configuration") == 1
    assert [group.name for group in settings.current().resource_groups] == ["gpu"]


@pytest.mark.parametrize("content", ["resourceGroups: 7", "{", "a: b: c", "#" * (2**20 + 1)])
def test_the_first_file_has_to_be_good(tmp_path: Path, content: str) -> None:
    file = tmp_path / "conf"
    file.write_text(content)
    with pytest.raises(ConfigurationError, match=r"conf(:\d+:\d+)?: "):
        followed(file)


def test_a_file_that_isnt_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        followed(tmp_path / "conf")
