"""TLS as a client: the one place where contexts that check a server's certificate are made."""

from __future__ import annotations

import ssl


def client_context(ca_pem: str | None = None, *, verify: bool = True) -> ssl.SSLContext:
    """A context that trusts the authorities in `ca_pem`, or the machine's without one, as kubectl would.

    Without `verify` nothing is checked. Raises `ssl.SSLError` and `ValueError` for a text that holds no certificates.
    """
    context = as_kubectl(ssl.create_default_context(cadata=ca_pem))
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def as_kubectl(context: ssl.SSLContext) -> ssl.SSLContext:
    """The same context, which from then on accepts what Go's crypto/x509 accepts.

    From Python 3.13 on `ssl.create_default_context` sets VERIFY_X509_STRICT, which asks for what RFC 5280 has of
    authorities, such as the Authority Key Identifier. Certificates of many clusters lack it, and Go doesn't ask for
    it. Chains, names, dates and purposes are checked as before.
    """
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
