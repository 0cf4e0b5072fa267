"""A configuration file that is reloaded when it changes, such as a ConfigMap mounted into a pod."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from vcbatch.api.yaml_reader import YamlError, only
from vcbatch.interfaces.clock import Clock

T = TypeVar("T")
log = logging.getLogger(__name__)

_CHECK_SECONDS = 2.0
_LARGEST = 1 << 20


class ConfigurationError(Exception):
    """The file can't be used; the message has its name and the reason."""


def read_bounded(path: Path) -> bytes:
    """The content of a configuration file. Raises `ConfigurationError` where it can't be read, or is too large."""
    try:
        with path.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from error
    if len(content) > _LARGEST:
        raise ConfigurationError(f"{path}: larger than {_LARGEST} bytes")
    return content


class FollowedFile(Generic[T]):
    """`current` is the result of `parse` on the file, which raises `ValueError` for invalid content.

    The first read raises `ConfigurationError`; later, an invalid file is reported once and the last valid one stays in
    use.
    """

    def __init__(self, path: Path, parse: Callable[[Any], T], *, clock: Clock) -> None:
        self.path = path
        self._parse = parse
        self._clock = clock
        self._seen: bytes | None = self._read()
        self.current = self._parsed(self._seen)
        self._error = ""  # why the file's present content isn't in use
        self._listeners: list[Callable[[], None]] = []
        self._error_listeners: list[Callable[[str], None]] = []

    def listen(self, listener: Callable[[], None]) -> None:
        """Call the listener after each change."""
        self._listeners.append(listener)

    def listen_to_errors(self, listener: Callable[[str], None]) -> None:
        """Call the listener with the reason whenever the file becomes invalid or the reason changes."""
        self._error_listeners.append(listener)

    async def follow(self) -> None:
        """Check the file periodically, until cancelled."""
        while True:
            await self._clock.sleep(_CHECK_SECONDS)
            self.refresh()

    def refresh(self) -> None:
        """Reload the file where it has changed. The content is compared: a mounted ConfigMap is a link."""
        try:
            content = self._read()
        except ConfigurationError as error:
            self._seen = None
            self._refuse(str(error))
            return
        if content == self._seen:
            return
        self._seen = content
        try:
            self.current = self._parsed(content)
        except ConfigurationError as error:
            self._refuse(str(error))
            return
        self._error = ""
        log.info("%s was reloaded", self.path)
        for listener in self._listeners:
            listener()

    def _refuse(self, error: str) -> None:
        if error == self._error:
            return
        self._error = error
        log.error("keeping the last valid configuration: %s", error)
        for listener in self._error_listeners:
            listener(error)

    def _read(self) -> bytes:
        return read_bounded(self.path)

    def _parsed(self, content: bytes) -> T:
        try:
            document = only(content)
        except YamlError as error:
            place = f"{self.path}:{error.line}:{error.column}"
            raise ConfigurationError(f"{place}: not valid YAML: {error}") from error
        try:
            return self._parse(document.value)
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(f"{self.path}: {error}") from error
