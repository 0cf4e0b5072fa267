"""The CronJob controller's decisions: which slot is due, whether its job may start, and which old jobs are kept."""

from vcbatch.core.cronjob.decide import decide
from vcbatch.core.cronjob.view import CronJobView

__all__ = ["CronJobView", "decide"]
