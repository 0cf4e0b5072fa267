"""The events of one pod, each of them emitted once where it would repeat."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from vcbatch.api.reasons import KubeletEvent
from vcbatch.core.machine import EventType
from vcbatch.local.kubelet import blueprint
from vcbatch.local.kubelet.events import EventRecorder
from vcbatch.local.kubelet.ports import Translation
from vcbatch.local.kubelet.sandbox import Mode

Json = dict[str, Any]


class PodEvents:
    """Emits events about the pod that `pod` returns: the object changes while it runs."""

    def __init__(self, recorder: EventRecorder, pod: Callable[[], Json]) -> None:
        self._recorder = recorder
        self._pod = pod
        self._reported: set[str] = set()

    def report(self, reason: str, message: str, *, container: str = "") -> None:
        """Emit a normal event."""
        self._send(EventType.NORMAL, reason, message, container)

    def warn(self, reason: str, message: str, *, container: str = "") -> None:
        """Emit a warning event."""
        self._send(EventType.WARNING, reason, message, container)

    def without_effect(self, mode: Mode) -> None:
        """Report the parts of the pod's specification that have no effect on this machine."""
        self.not_isolated(blueprint.without_effect(self._pod(), mode, uid=os.geteuid(), gid=os.getegid()))

    def not_isolated(self, words: Iterable[str]) -> None:
        """Emitted once for the same words; not at all without any."""
        text = "; ".join(words)
        if text and self._is_new(text):
            self.warn(KubeletEvent.NOT_ISOLATED, text)

    def translated(self, translations: Iterable[Translation]) -> None:
        """Report the ports that the gang uses in place of the requested ones."""
        for translation in translations:
            text = (
                f"port {translation.asked} of {translation.host or 'this gang'} is taken on this machine:"
                f" the gang uses {translation.given} instead"
            )
            if self._is_new(text):
                self.report(KubeletEvent.PORT_REMAPPED, text)

    def _is_new(self, text: str) -> bool:
        if text in self._reported:
            return False
        self._reported.add(text)
        return True

    def _send(self, kind: EventType, reason: str, message: str, container: str) -> None:
        self._recorder.event(self._pod(), type=kind, reason=reason, message=message, container=container)
