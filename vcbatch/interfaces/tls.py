"""Client-side TLS: the only module that creates contexts which verify a server's certificate."""

from __future__ import annotations

import ssl


def client_context(ca_pem: str | None = None, *, verify: bool = True) -> ssl.SSLContext:
    """A context that trusts the authorities in `ca_pem`, or those of the system without it, as kubectl does.

    Without `verify` nothing is checked. Raises `ssl.SSLError` and `ValueError` for a text without certificates.
    """
    context = as_kubectl(ssl.create_default_context(cadata=ca_pem))
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def as_kubectl(context: ssl.SSLContext) -> ssl.SSLContext:
    """The same context, changed to accept what Go's crypto/x509 accepts.

    Since Python 3.13 `ssl.create_default_context` sets VERIFY_X509_STRICT, which requires fields of authorities from
    RFC 5280, such as the Authority Key Identifier. Certificates of many clusters lack it, and Go doesn't require it.
    Chains, names, dates and purposes are still checked.
    """
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
