"""`list` and `get` of the kinds without options of their own."""

from __future__ import annotations

from vcbatch.cli.resources.kinds import CRONJOB, HYPERNODE, JOBFLOW, JOBTEMPLATE, POD, QUEUE
from vcbatch.cli.resources.listing import get_command, list_command

queues = list_command(QUEUE)
queue = get_command(QUEUE)
jobflows = list_command(JOBFLOW)
jobflow = get_command(JOBFLOW)
jobtemplates = list_command(JOBTEMPLATE)
jobtemplate = get_command(JOBTEMPLATE)
cronjobs = list_command(CRONJOB)
cronjob = get_command(CRONJOB)
pod = get_command(POD)
hypernodes = list_command(HYPERNODE)
hypernode = get_command(HYPERNODE)
