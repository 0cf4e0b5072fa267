"""Admission without a webhook: rules as ValidatingAdmissionPolicies and MutatingAdmissionPolicies of Kubernetes.

This package has the rules that an expression can check on one object alone: `jobs`, `queues` and `others` validate,
`mutating` sets defaults, `documents` generates the YAML. Rules that need other objects, Kubernetes' rules for pods, and
arguments of plugins are left to the service; `tests/corpus/rules.yaml` lists for each rule which it is. Needs
Kubernetes 1.34, for comprehensions with two variables and MutatingAdmissionPolicies.
"""

from webhooks.policies.documents import MUTATING_VERSIONS, documents

__all__ = ["MUTATING_VERSIONS", "documents"]
