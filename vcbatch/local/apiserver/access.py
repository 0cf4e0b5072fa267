"""Authorization: there is one account, whose token allows running code as the owner of this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vcbatch.local.apiserver.apierrors import StatusError
from vcbatch.local.apiserver.request import Target

ADMINISTRATORS = "system:masters"
AUTHENTICATED = "system:authenticated"

_ABOUT_ONESELF = frozenset({"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"})
"""Reviews that every user may create in Kubernetes (its ClusterRole `system:basic-user`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """The user of a request. Members of `system:masters` have all permissions, other users only discovery and reviews
    of themselves."""

    name: str
    groups: Sequence[str] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    @property
    def administrator(self) -> bool:
        return ADMINISTRATORS in self.groups

    @property
    def discovers(self) -> bool:
        """Whether the user may read discovery (Kubernetes' ClusterRole `system:discovery`)."""
        return self.administrator or AUTHENTICATED in self.groups


def authorize(user: User, target: Target, verb: str) -> None:
    """Raises 403 with Kubernetes' message for all users but administrators."""
    if user.administrator or (user.discovers and verb == "create" and target.plural in _ABOUT_ONESELF):
        return
    resource = f"{target.plural}.{target.group}" if target.group else target.plural
    what = f'{resource} "{target.name}"' if target.name else resource
    asked = f"{target.plural}/{target.subresource}" if target.subresource else target.plural
    namespace = target.namespace or (target.name if target.plural == "namespaces" and not target.group else "")
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    details = {"name": target.name, "group": target.group, "kind": target.plural}
    raise StatusError(
        403,
        "Forbidden",
        f'{what} is forbidden: User "{user.name}" cannot {verb} resource "{asked}" '
        f'in API group "{target.group}" {where}',
        {key: value for key, value in details.items() if value},
    )


def forbidden_path(user: User, method: str, path: str) -> StatusError:
    """The 403 error for a path that isn't a resource's."""
    message = f'forbidden: User "{user.name}" cannot {method.lower()} path "{path}"'
    return StatusError(403, "Forbidden", message, {"": None})
