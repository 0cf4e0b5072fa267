"""The address of the API server and the credentials for it: kubeconfig files and the in-cluster service account.

Reads the same files as `kubectl`, with the precedence of k8s.io/client-go `tools/clientcmd`: an explicit path, else the
files of $KUBECONFIG merged (the first mention of a name wins), else ~/.kube/config, else the service account of the
pod.
"""

from __future__ import annotations

import base64
import importlib.util
import os
import ssl
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from vcbatch.api.loose import listed
from vcbatch.interfaces.installation import pip_install
from vcbatch.interfaces.tls import client_context
from vcbatch.runtime.client.credentials import (
    AuthProvider,
    BasicAuth,
    Credentials,
    ExecPlugin,
    NoCredentials,
    StaticToken,
    TokenFile,
)

Json = dict[str, Any]

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
SERVICE_ACCOUNT_VARIABLE = "VCBATCH_SERVICEACCOUNT_DIR"
"""Environment variable that names another directory with `token`, `ca.crt` and `namespace`."""
_MAX_BYTES = 8 * 1024 * 1024


class KubeconfigError(Exception):
    """The configuration can't be used; the message names the file, the entry and the error."""


class NothingConfigured(KubeconfigError):
    """There is no configuration at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """The settings of a connection. Certificates are PEM text, and the proxy's address may contain a password; none of
    it is ever logged."""

    server: str
    credentials: Credentials = field(default_factory=NoCredentials)
    namespace: str = "default"
    ca_pem: str | None = field(default=None, repr=False)
    cert_pem: str | None = field(default=None, repr=False)
    key_pem: str | None = field(default=None, repr=False)
    insecure: bool = False
    tls_server_name: str | None = None
    proxy_url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def ssl_context(self) -> ssl.SSLContext | None:
        """The TLS settings, or None for plain HTTP. Raises `KubeconfigError` for a certificate that can't be read."""
        if not self.server.startswith("https://"):
            return None
        try:
            context = client_context(self.ca_pem, verify=not self.insecure)
            if self.cert_pem and self.key_pem:
                _load_cert_chain(context, self.cert_pem, self.key_pem)
        except (ssl.SSLError, ValueError, OSError) as error:
            raise KubeconfigError(f"the certificates for {self.server} can't be used: {error}") from error
        return context


class CertificateRefusedError(Exception):
    """The server's certificate isn't trusted by the configuration. The message says what to check."""

    @classmethod
    def by(cls, connection: Connection, error: ssl.SSLCertVerificationError) -> CertificateRefusedError:
        host = urlsplit(connection.server).hostname
        return cls(
            f"the certificate of {connection.server} is refused: {error.verify_message} (it is checked against "
            f"certificate-authority{'' if connection.ca_pem else ', here that of the machine,'} and the name "
            f"{connection.tls_server_name or host!r})"
        )


async def shake_hands(connection: Connection, *, seconds: float = 10.0) -> None:
    """Verify the server's certificate. Raises `CertificateRefusedError` where it isn't valid, which no retry resolves.
    An unreachable server, which may start later, is no error here; nor is one behind a proxy."""
    import asyncio  # a command that makes one request ends before it would be loaded

    context = connection.ssl_context()
    if context is None or connection.proxy_url:
        return
    server = urlsplit(connection.server)
    host = server.hostname or ""
    opening = asyncio.open_connection(
        host, server.port or 443, ssl=context, server_hostname=connection.tls_server_name or host
    )
    try:
        _, writer = await asyncio.wait_for(opening, seconds)
    except ssl.SSLCertVerificationError as error:
        raise CertificateRefusedError.by(connection, error) from error
    except (OSError, TimeoutError):
        return
    writer.close()


def _load_cert_chain(context: ssl.SSLContext, cert_pem: str, key_pem: str) -> None:
    """Load a certificate and its key. The ssl module reads them from files only: these exist during the call and are
    readable by the current user only."""
    import tempfile  # it loads a dozen modules, and few users have client certificates

    with tempfile.TemporaryDirectory(prefix="vcbatch-tls-") as folder:
        cert, key = Path(folder, "cert.pem"), Path(folder, "key.pem")
        for path, text in ((cert, cert_pem), (key, key_pem)):
            path.touch(mode=0o600)
            path.write_text(text)
        context.load_cert_chain(cert, key)


def load(path: Path | None = None, *, context: str | None = None) -> Connection:
    """The connection that the user's configuration describes. Raises `KubeconfigError`."""
    files = _candidates(path)
    if files:
        return _from_files(files, context)
    if context is None and (_service_account() / "token").is_file() and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster()
    raise NothingConfigured(
        "no cluster is configured: give --kubeconfig, set KUBECONFIG, create ~/.kube/config, "
        "or run inside a pod with a service account"
    )


def _service_account() -> Path:
    return Path(os.environ.get(SERVICE_ACCOUNT_VARIABLE) or _SERVICE_ACCOUNT)


def in_cluster() -> Connection:
    """The connection of a pod's service account. Its token is read again whenever the kubelet rotates it."""
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise KubeconfigError("KUBERNETES_SERVICE_HOST isn't set: this isn't a pod of a cluster")
    if ":" in host:
        host = f"[{host}]"
    folder = _service_account()
    namespace = folder / "namespace"
    return Connection(
        server=f"https://{host}:{port}",
        credentials=TokenFile(path=folder / "token"),
        ca_pem=_read(folder / "ca.crt"),
        namespace=_read(namespace).strip() if namespace.is_file() else "default",
    )


def _candidates(path: Path | None) -> list[Path]:
    if path is not None:
        if not _is_there(path):
            raise KubeconfigError(f"{path}: no such file")
        return [path]
    listed = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    if listed:
        found = [part for part in listed if _is_there(part)]
        if not found:
            raise KubeconfigError(f"KUBECONFIG names no file that exists: {os.environ['KUBECONFIG']}")
        return found
    home = Path.home() / ".kube" / "config"
    return [home] if _is_there(home) else []


def _is_there(path: Path) -> bool:
    """Whether the path exists and isn't a directory. A pipe counts, such as a shell's `<(...)`. A path that may not be
    checked counts too: reading it reports the error."""
    try:
        return not stat.S_ISDIR(path.stat().st_mode)
    except PermissionError:
        return True
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class _Entry:
    """One named entry, with its file (relative paths in it are relative to that file)."""

    value: Json
    file: Path


def _from_files(files: list[Path], wanted: str | None) -> Connection:
    sections: dict[str, dict[str, _Entry]] = {"clusters": {}, "users": {}, "contexts": {}}
    current = ""
    for file in files:
        document = _parse(file)
        current = current or str(document.get("current-context") or "")
        for section, singular in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
            for entry in listed(document, section):
                if isinstance(entry, dict) and isinstance(entry.get("name"), str):
                    value = entry.get(singular)
                    sections[section].setdefault(entry["name"], _Entry(value if isinstance(value, dict) else {}, file))
    where = ", ".join(str(file) for file in files)
    name = wanted or current
    if not name:
        raise KubeconfigError(f"{where}: current-context isn't set, and no context was named")
    context = _named(sections["contexts"], "context", name, where)
    cluster = _named(sections["clusters"], "cluster", str(context.value.get("cluster") or ""), where)
    user_name = str(context.value.get("user") or "")
    user = _named(sections["users"], "user", user_name, where) if user_name else _Entry({}, cluster.file)
    return _connection(cluster=cluster, user=user, context=context.value, name=name)


def _named(entries: Mapping[str, _Entry], what: str, name: str, where: str) -> _Entry:
    if name not in entries:
        known = ", ".join(sorted(entries)) or "none"
        raise KubeconfigError(f"{where}: {what} {name!r} doesn't exist (known: {known})")
    return entries[name]


def _connection(*, cluster: _Entry, user: _Entry, context: Json, name: str) -> Connection:
    server = str(cluster.value.get("server") or "").rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise KubeconfigError(f"{cluster.file}: the cluster of context {name!r} has no usable server: {server!r}")
    insecure = bool(cluster.value.get("insecure-skip-tls-verify"))
    return Connection(
        server=server,
        credentials=_credentials(user, cluster=cluster.value, context_name=name),
        namespace=str(context.get("namespace") or "default"),
        ca_pem=None if insecure else _pem(cluster, "certificate-authority"),
        cert_pem=_pem(user, "client-certificate"),
        key_pem=_pem(user, "client-key"),
        insecure=insecure,
        tls_server_name=str(cluster.value.get("tls-server-name") or "") or None,
        proxy_url=str(cluster.value.get("proxy-url") or "") or None,
        headers=_impersonation(user.value),
    )


def _credentials(user: _Entry, *, cluster: Json, context_name: str) -> Credentials:
    value = user.value
    if value.get("tokenFile"):  # before `token`, as in client-go: the file is the one that is rotated
        return TokenFile(path=_beside(user.file, str(value["tokenFile"])))
    if value.get("token"):
        return StaticToken(token=str(value["token"]))
    if value.get("username"):
        return BasicAuth(username=str(value["username"]), password=str(value.get("password") or ""))
    if isinstance(value.get("exec"), dict):
        return ExecPlugin(config=value["exec"], folder=user.file.parent, cluster=cluster)
    if isinstance(value.get("auth-provider"), dict):
        if importlib.util.find_spec("kubernetes") is None:
            raise KubeconfigError(
                f"{user.file}: the user of context {context_name!r} has an auth-provider, which needs the package "
                f"kubernetes. Use an exec plugin, or in a checkout of vcbatch: {pip_install('auth-provider')}"
            )
        return AuthProvider(file=user.file, context=context_name)
    return NoCredentials()


def _impersonation(user: Json) -> dict[str, str]:
    headers: dict[str, str] = {}
    if user.get("as"):
        headers["Impersonate-User"] = str(user["as"])
    groups = user.get("as-groups")
    if isinstance(groups, list) and groups:
        if len(groups) > 1:
            raise KubeconfigError("more than one entry of as-groups isn't supported: leave one, or use its own user")
        headers["Impersonate-Group"] = str(groups[0])
    return headers


def _pem(entry: _Entry, key: str) -> str | None:
    """`KEY-data` (base64) takes precedence over `KEY` (a path), as in client-go."""
    data = entry.value.get(f"{key}-data")
    if data:
        try:
            return base64.b64decode(str(data), validate=True).decode()
        except ValueError as error:
            raise KubeconfigError(f"{entry.file}: {key}-data isn't base64 of PEM text: {error}") from error
    path = entry.value.get(key)
    return _read(_beside(entry.file, str(path))) if path else None


def _beside(file: Path, path: str) -> Path:
    try:
        return (file.parent / Path(path).expanduser()).resolve()
    except (ValueError, RuntimeError, OSError) as error:  # such as the home of an unknown user, or a cycle of links
        raise KubeconfigError(f"{file}: {path!r} is no path: {error}") from error


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            content = stream.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise KubeconfigError(f"{path}: larger than {_MAX_BYTES} bytes")
        return content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise KubeconfigError(f"{path}: {error}") from error


def _parse(file: Path) -> Json:
    # Imported late: it takes a tenth of a command's start time, and isn't needed inside a pod.
    from vcbatch.api.yaml_reader import Limits, YamlError, only

    try:
        document = only(_read(file), Limits(size=_MAX_BYTES, nodes=500_000, aliased=100_000, documents=1)).value
    except YamlError as error:
        # Only the position: the parser's message may quote a secret.
        raise KubeconfigError(f"{file}: not valid YAML (line {error.line}, column {error.column})") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise KubeconfigError(f"{file}: not a kubeconfig: the document is a {type(document).__name__}")
    return document
