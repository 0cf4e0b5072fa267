"""Authentication: the user of a bearer token or a client certificate, and impersonation."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vcbatch.api.field_errors import go_quote
from vcbatch.local.apiserver.access import ADMINISTRATORS, AUTHENTICATED, User
from vcbatch.local.apiserver.apierrors import StatusError, bad_request, forbidden

ANONYMOUS = User(name="system:anonymous", groups=("system:unauthenticated",))


ADMINISTRATOR = "vcbatch-admin"
"""The user of the administrator's token."""


class Authenticator:
    """The administrator's token, those of service accounts (`account` returns the user of one, or None), and the
    certificates that the server's own CA issued."""

    def __init__(
        self,
        token: str,
        *,
        user: str = ADMINISTRATOR,
        account: Callable[[str], User | None] = lambda _token: None,
    ) -> None:
        self._token = token.encode()
        self._account = account
        self._admin = User(name=user, groups=(ADMINISTRATORS, AUTHENTICATED))

    def token_user(self, token: str) -> User | None:
        """The administrator, if the token is the administrator's; else None."""
        return self._admin if hmac.compare_digest(token.encode(errors="replace"), self._token) else None

    def user(
        self, path: str, headers: Mapping[str, str], certificate: Mapping[str, Any] | None, token: str = ""
    ) -> User:
        """The user; `ANONYMOUS` without credentials, `StatusError` 401 for wrong ones. `token` is from the handshake of
        a WebSocket."""
        authorization = headers.get("authorization", "")
        scheme, _, credential = authorization.partition(" ")
        if scheme.lower() == "bearer" and credential.strip():
            user = self._owner(credential.strip())
        elif certificate and (named := _subject(certificate)):
            user = named
        else:
            user = self._owner(token) if token else ANONYMOUS
        return impersonated(user, headers)

    def _owner(self, token: str) -> User:
        owner = self.token_user(token) or self._account(token)
        if owner is None:
            raise unauthorized()
        return owner


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


def _subject(certificate: Mapping[str, Any]) -> User | None:
    """Common name and organizations of a verified certificate, as `ssl.getpeercert` returns them."""
    names: list[str] = []
    groups: list[str] = []
    for relative in certificate.get("subject", ()):
        for key, value in relative:
            if key == "commonName":
                names.append(value)
            elif key == "organizationName":
                groups.append(value)
    return User(name=names[0], groups=(*groups, AUTHENTICATED)) if names else None


def impersonated(user: User, headers: Mapping[str, str]) -> User:
    """The user of `Impersonate-User`, which only administrators may set."""
    name = headers.get("impersonate-user")
    if not name:
        # A client that requests impersonation with incomplete headers must not be served with its own permissions.
        if any(header.startswith("impersonate-") for header in headers):
            uid, groups = headers.get("impersonate-uid", ""), _listed(headers.get("impersonate-group", ""))
            named = "{" + ", ".join(go_quote(group) for group in groups) + "}" if groups else "(nil)"
            raise bad_request(
                f'requested &user.DefaultInfo{{Name:"", UID:{go_quote(uid)}, Groups:[]string{named}, '
                "Extra:map[string][]string(nil)} without impersonating a user name"
            )
        return user
    if not user.administrator:
        raise forbidden(
            group="",
            plural="users",
            name=name,
            message=f'User "{user.name}" cannot impersonate resource "users" in API group "" at the cluster scope',
        )
    return User(name=name, groups=(*_listed(headers.get("impersonate-group", "")), AUTHENTICATED))


def _listed(text: str) -> Sequence[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
