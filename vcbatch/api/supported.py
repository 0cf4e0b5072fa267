"""What Volcano's API has and this version doesn't run yet.

A job that uses any of it is refused at admission, since the alternative is to run it wrongly. The rules for these
features are in `vcbatch.api.validate` all the same; a feature that is done loses its entry here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """Wire names of fields of a job, and kinds that are stored but not acted on."""

    job_fields: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()


NOTHING: Final = Unsupported()

THIS_VERSION: Final = Unsupported(
    job_fields=frozenset({"volumes"}),
    kinds=frozenset({"CronJob", "JobFlow", "JobTemplate", "HyperNode"}),
)
