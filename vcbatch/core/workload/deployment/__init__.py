"""The Deployment controller's decisions: ReplicaSets between which a rollout moves the pods."""

from vcbatch.core.workload.deployment.decide import decide
from vcbatch.core.workload.deployment.view import DeploymentView, deployment_owner

__all__ = ["DeploymentView", "decide", "deployment_owner"]
