"""Information that a scheduler publishes on its Lease for commands that simulate it: its start options, and the
scheduler configuration in use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, cast

from vcbatch.api.names import POLICY, SCHEDULER_SETUP
from vcbatch.scheduler.framework.policy import Policy
from vcbatch.scheduler.policy.text import effective
from vcbatch.scheduler.simulation.recording import Settings
from vcbatch.scheduler.simulation.world import WorldError

_LONGEST: Final = 128 << 10
"""Limit of the configuration, in bytes: half of what Kubernetes accepts as an object's annotations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseNotice:
    """One scheduler's notice.

    Attributes:
        identity: the replica that published it, as the Lease names it while it leads.
        source: where the configuration is kept, in words for users; empty for the built-in one.
        settings: its start options, with the configuration; None in place of one that is too long for a Lease.
    """

    identity: str
    source: str
    settings: Settings

    @staticmethod
    def of(identity: str, source: str, settings: Settings, policy: Policy) -> LeaseNotice:
        """The notice of a scheduler with these settings and this configuration in use. Possible secrets in it are left
        out."""
        text = effective(policy, metrics=False)
        published = text if len(text.encode()) <= _LONGEST else None
        return LeaseNotice(identity=identity, source=source, settings=replace(settings, policy=published))

    def annotations(self) -> dict[str, str]:
        """The notice as annotations of the Lease. Raises `ValueError` for a share that can't be encoded."""
        usual = Settings(taken=self.settings.taken).line()
        settings = {
            key: value
            for key, value in self.settings.line().items()
            if key != "policy" and (key == "format" or value != usual[key])
        }
        setup = {"identity": self.identity, "source": self.source, "settings": settings}
        return {SCHEDULER_SETUP: json.dumps(setup), POLICY: self.settings.policy or ""}

    @staticmethod
    def read(annotations: Mapping[str, str], *, now: datetime) -> LeaseNotice | None:
        """The notice of such a Lease, None where it carries none; `now` is when it is read.

        Raises:
            WorldError: it can't be parsed; the message has the reason.
        """
        text = annotations.get(SCHEDULER_SETUP)
        if text is None:
            return None
        try:
            setup: Any = json.loads(text)
            settings = cast("dict[str, Any]", setup["settings"])
            usual = Settings(taken=now).line() | {"policy": annotations.get(POLICY) or None}
            return LeaseNotice(
                identity=str(setup["identity"]), source=str(setup["source"]), settings=Settings.read(usual | settings)
            )
        except WorldError as error:
            raise WorldError(f"annotation {SCHEDULER_SETUP}: {error}") from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise WorldError(f"annotation {SCHEDULER_SETUP}: {error!r}") from error
