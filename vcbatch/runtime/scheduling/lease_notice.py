"""What a scheduler says of itself on its Lease, for commands that ask what it would do: how it was started, and the
policy that is in force."""

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
"""Of the policy, in bytes: half of what Kubernetes takes as an object's annotations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseNotice:
    """One scheduler's notice.

    Attributes:
        identity: the replica that gave it, as the Lease names it while it leads.
        source: where the policy is kept, as people call it; empty for the built-in one.
        settings: how it was started, with the policy; None in its place where that is too long for a Lease.
    """

    identity: str
    source: str
    settings: Settings

    @staticmethod
    def of(identity: str, source: str, settings: Settings, policy: Policy) -> LeaseNotice:
        """Of a scheduler started so whose policy in force is this one. What may be secret of it isn't told."""
        text = effective(policy, metrics=False)
        reported = text if len(text.encode()) <= _LONGEST else None
        return LeaseNotice(identity=identity, source=source, settings=replace(settings, policy=reported))

    def annotations(self) -> dict[str, str]:
        """The notice as the Lease carries it. Raises `ValueError` for a share that can't be written down."""
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
            WorldError: it can't be understood; says why.
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
