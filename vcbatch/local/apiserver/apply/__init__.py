"""Server-side apply: which manager owns which field, and the result of an apply.

Fields are tracked from an object's first apply on; before that no client needs their owners, and tracking every write
would halve the speed of all of them. Fields that exist at the first apply belong to `before-first-apply`, as in
Kubernetes for objects that it never tracked. Source: KEP-555, sigs.k8s.io/structured-merge-diff.
"""

from vcbatch.local.apiserver.apply.config import check_config
from vcbatch.local.apiserver.apply.managed import Applied, apply, created, given_claims, updated

__all__ = ["Applied", "apply", "check_config", "created", "given_claims", "updated"]
