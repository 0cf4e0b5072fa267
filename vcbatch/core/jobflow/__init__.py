"""The JobFlow controller's decisions: which jobs of a flow are due, the states of the others, and the flow's phase."""

from vcbatch.core.jobflow.child import Child, child_of
from vcbatch.core.jobflow.decide import decide
from vcbatch.core.jobflow.probe import Probe, ProbeKind
from vcbatch.core.jobflow.probed import probed_jobs, wanted_probes
from vcbatch.core.jobflow.view import JobFlowView, flow_of

__all__ = [
    "Child",
    "JobFlowView",
    "Probe",
    "ProbeKind",
    "child_of",
    "decide",
    "flow_of",
    "probed_jobs",
    "wanted_probes",
]
