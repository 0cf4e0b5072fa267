"""The Deployment controller's decisions: ReplicaSets that hand their pods over from one template to the next."""

from vcbatch.core.workload.deployment.decide import decide
from vcbatch.core.workload.deployment.view import DeploymentView, deployment_owner

__all__ = ["DeploymentView", "decide", "deployment_owner"]
