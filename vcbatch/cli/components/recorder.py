"""Creates a scheduler that may record its cycles."""

from __future__ import annotations

from pathlib import Path

from vcbatch.cli.base.output import CliError
from vcbatch.runtime.scheduling.cycle_recorder import CycleRecorder, RecordedScheduler
from vcbatch.scheduler import Policy, Scheduler
from vcbatch.scheduler.simulation.recording import Settings


def recorded_scheduler(policy: Policy | None, settings: Settings, directory: Path | None) -> Scheduler:
    """A scheduler that records its cycles in `directory`, if one is given. Raises `CliError`."""
    if directory is None:
        return settings.scheduler(policy)
    try:
        return RecordedScheduler(policy, CycleRecorder(directory, settings))
    except ValueError as error:
        raise CliError(f"--record-cycles: {error}") from error
