"""Server-side apply: who set which field, and what follows when somebody applies.

Fields are tracked from an object's first apply on; before that nobody asks who set them, and tracking every write would
halve the speed of all of them. What is there at the first apply belongs to `before-first-apply`, as in Kubernetes for
objects that it never tracked. Source: KEP-555, sigs.k8s.io/structured-merge-diff.
"""

from vcbatch.local.apiserver.apply.config import check_config
from vcbatch.local.apiserver.apply.managed import Applied, apply, created, given_claims, updated

__all__ = ["Applied", "apply", "check_config", "created", "given_claims", "updated"]
