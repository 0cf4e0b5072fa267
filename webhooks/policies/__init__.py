"""Admission without a webhook: rules as ValidatingAdmissionPolicies and MutatingAdmissionPolicies of Kubernetes.

What an expression can say of one object by itself is in here: `jobs`, `queues` and `others` judge, `mutating` fills in,
`documents` makes the YAML. What takes a look at other objects, the rules of Kubernetes for pods, and arguments of
plugins are left to the service; `tests/corpus/rules.yaml` says of each rule which it is. Needs Kubernetes 1.34, for
comprehensions with two variables and MutatingAdmissionPolicies.
"""

from webhooks.policies.documents import MUTATING_VERSIONS, documents

__all__ = ["MUTATING_VERSIONS", "documents"]
