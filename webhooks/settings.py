"""The rules' settings, with the file of resource groups read again when it changes."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import yaml

from vcbatch.api.admission import Settings
from vcbatch.api.resource_groups import MalformedResourceGroups, ResourceGroup, parse_resource_groups
from vcbatch.seams.clock import Clock

log = logging.getLogger(__name__)

_LOOK_SECONDS = 5.0
_LARGEST = 1 << 20


class ConfigurationError(Exception):
    """The file can't be used; the message names it and the reason."""


class FollowedSettings:
    """`current` is what holds now. The first look at the file raises `ConfigurationError`; later one that can't be used
    is told once, and the last good one holds. Without a file there are no resource groups."""

    def __init__(self, settings: Settings, file: Path | None, *, clock: Clock) -> None:
        self._file = file
        self._clock = clock
        self._seen = self._read()
        self._settings = replace(settings, resource_groups=self._parse(self._seen))

    def current(self) -> Settings:
        return self._settings

    async def follow(self) -> None:
        """Look at the file now and then, until cancelled."""
        while True:
            await self._clock.sleep(_LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        """Take the file over where it has changed. Content is compared: a mounted ConfigMap is a link."""
        try:
            content = self._read()
            if content == self._seen:
                return
            self._seen = content
            groups = self._parse(content)
        except ConfigurationError as error:
            log.error("the resource groups aren't replaced: %s", error)
            return
        self._settings = replace(self._settings, resource_groups=groups)
        log.info("the resource groups were replaced", extra={"groups": len(groups)})

    def _read(self) -> bytes:
        if self._file is None:
            return b""
        try:
            with self._file.open("rb") as stream:
                content = stream.read(_LARGEST + 1)
        except OSError as error:
            raise ConfigurationError(f"{self._file}: {error.strerror}") from error
        if len(content) > _LARGEST:
            raise ConfigurationError(f"{self._file}: larger than {_LARGEST} bytes")
        return content

    def _parse(self, content: bytes) -> tuple[ResourceGroup, ...]:
        try:
            return parse_resource_groups(yaml.safe_load(content))
        except (yaml.YAMLError, MalformedResourceGroups, RecursionError) as error:
            raise ConfigurationError(f"{self._file}: {error}") from error
