"""The job controller's decisions.

`decide` turns a `JobView` into a decision; `wanted_children`, `wanted_claims` and `wanted_references` name the objects
beside pods and the PodGroup that the view must contain, and `read_of_pod` and `read_of_group` the properties of those
that a decision reads.
"""

from vcbatch.core.job.children import wanted_children
from vcbatch.core.job.decide import decide
from vcbatch.core.job.plugin_trouble import plugin_failed
from vcbatch.core.job.plugins import PluginFailedError
from vcbatch.core.job.podgroup import read_of_group
from vcbatch.core.job.references import wanted_references
from vcbatch.core.job.roster import read_of_pod
from vcbatch.core.job.start import OtherJobs, awaits, other_jobs, waits_for_others
from vcbatch.core.job.unsupported import unreadable
from vcbatch.core.job.view import ChildKey, JobView, read_job
from vcbatch.core.job.volumes import claims_to_check, wanted_claims

__all__ = [
    "ChildKey",
    "JobView",
    "OtherJobs",
    "PluginFailedError",
    "awaits",
    "claims_to_check",
    "decide",
    "other_jobs",
    "plugin_failed",
    "read_job",
    "read_of_group",
    "read_of_pod",
    "unreadable",
    "waits_for_others",
    "wanted_children",
    "wanted_claims",
    "wanted_references",
]
