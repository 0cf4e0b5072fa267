"""The rules' settings, with the file of resource groups reloaded when it changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vcbatch.api.admission import Settings
from vcbatch.api.resource_groups import ResourceGroup, parse_resource_groups
from vcbatch.hosting.supervise import never
from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.configuration.followed_file import FollowedFile


class FollowedSettings:
    """`current` are the present settings; without a file there are no resource groups. Raises `ConfigurationError`
    where the first load of the file fails."""

    def __init__(self, settings: Settings, file: Path | None, *, clock: Clock) -> None:
        self._settings = settings
        self._file: FollowedFile[tuple[ResourceGroup, ...]] | None = None
        if file is not None:
            self._file = FollowedFile(file, parse_resource_groups, clock=clock)
            self._file.listen(self._take)
            self._take()

    def current(self) -> Settings:
        return self._settings

    async def follow(self) -> None:
        """Check the file periodically, until cancelled."""
        await (self._file.follow() if self._file is not None else never())

    def refresh(self) -> None:
        """Load the file where it has changed."""
        if self._file is not None:
            self._file.refresh()

    def _take(self) -> None:
        if self._file is not None:
            self._settings = replace(self._settings, resource_groups=self._file.current)
