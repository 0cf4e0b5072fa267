"""Kubeconfig files as kubectl reads them, and errors that say what is wrong where."""

from __future__ import annotations

import base64
import importlib.util
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from vcbatch.runtime.client import kubeconfig
from vcbatch.runtime.client.credentials import (
    AuthProvider,
    BasicAuth,
    ExecPlugin,
    NoCredentials,
    StaticToken,
    TokenFile,
)
from vcbatch.runtime.client.kubeconfig import KubeconfigError, load

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def document(**user: object) -> dict:
    return {
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://example:6443"}}],
        "users": [{"name": "u", "user": user}],
    }


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def test_a_token_and_embedded_authority(tmp_path: Path):
    content = document(token="t")
    pem = "-----BEGIN CERTIFICATE-----\n"
    content["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(pem.encode()).decode()
    connection = load(write(tmp_path / "config", content))
    assert connection.server == "https://example:6443"
    assert connection.namespace == "team"
    assert connection.ca_pem == pem
    assert connection.credentials == StaticToken(token="t")


def test_a_pipe_is_read_as_a_file_is():
    """`--kubeconfig <(...)`"""
    reading, writing = os.pipe()
    try:
        with os.fdopen(writing, "w") as pipe:
            yaml.safe_dump(document(token="t"), pipe)
        assert load(Path(f"/dev/fd/{reading}")).namespace == "team"
    finally:
        os.close(reading)


def test_a_folder_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path))
    with pytest.raises(KubeconfigError, match="names no file that exists"):
        load()


def test_relative_paths_are_relative_to_the_file(tmp_path: Path):
    folder = tmp_path / "kube"
    folder.mkdir()
    (folder / "client.pem").write_text("cert")
    (folder / "client.key").write_text("key")
    content = document(**{"client-certificate": "client.pem", "client-key": "client.key"})
    connection = load(write(folder / "config", content))
    assert (connection.cert_pem, connection.key_pem) == ("cert", "key")
    assert isinstance(connection.credentials, NoCredentials)


def test_files_are_merged_and_the_first_mention_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    first = document(token="first")
    second = document(token="second")
    second["contexts"].append({"name": "other", "context": {"cluster": "c2", "user": "u"}})
    second["clusters"].append({"name": "c2", "cluster": {"server": "http://other"}})
    paths = [write(tmp_path / "1", first), tmp_path / "missing", write(tmp_path / "2", second)]
    monkeypatch.setenv("KUBECONFIG", ":".join(str(path) for path in paths))
    assert load().credentials == StaticToken(token="first")
    other = load(context="other")
    assert (other.server, other.credentials) == ("http://other", StaticToken(token="first"))


async def test_a_token_file_is_read_again_when_it_rotates(tmp_path: Path):
    token = tmp_path / "token"
    token.write_text("one\n")
    connection = load(write(tmp_path / "config", document(tokenFile=str(token))))
    credentials = connection.credentials
    assert isinstance(credentials, TokenFile)
    assert await credentials.authorization(now=NOW) == "Bearer one"
    token.write_text("two\n")
    assert await credentials.authorization(now=NOW + timedelta(seconds=30)) == "Bearer one"
    assert await credentials.authorization(now=NOW + timedelta(seconds=61)) == "Bearer two"
    token.write_text("three\n")
    credentials.refused()
    assert await credentials.authorization(now=NOW + timedelta(seconds=62)) == "Bearer three"
    token.unlink()
    credentials.refused()
    assert await credentials.authorization(now=NOW + timedelta(seconds=63)) == "Bearer three"


async def test_a_credential_plugin_is_run_once_until_its_token_ends(tmp_path: Path):
    plugin = tmp_path / "plugin.sh"
    counter = tmp_path / "count"
    plugin.write_text(
        f"""#!/bin/sh
echo x >> {counter}
cat <<END
{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
 "status": {{"token": "from-plugin", "expirationTimestamp": "2026-01-01T01:00:00Z"}}}}
END
"""
    )
    plugin.chmod(0o700)
    config = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}
    connection = load(write(tmp_path / "config", document(exec=config)))
    credentials = connection.credentials
    assert isinstance(credentials, ExecPlugin)
    for minutes in (0, 10, 50):
        assert await credentials.authorization(now=NOW + timedelta(minutes=minutes)) == "Bearer from-plugin"
    assert counter.read_text().count("x") == 1
    await credentials.authorization(now=NOW + timedelta(minutes=61))
    assert counter.read_text().count("x") == 2


async def test_user_and_password(tmp_path: Path):
    connection = load(write(tmp_path / "config", document(username="u", password="p")))
    assert connection.credentials == BasicAuth(username="u", password="p")
    assert await connection.credentials.authorization(now=NOW) == "Basic " + base64.b64encode(b"u:p").decode()


def test_impersonation_becomes_headers(tmp_path: Path):
    connection = load(write(tmp_path / "config", document(**{"token": "t", "as": "jane", "as-groups": ["dev"]})))
    assert connection.headers == {"Impersonate-User": "jane", "Impersonate-Group": "dev"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: [", "not valid YAML"),
        ("- a list", "not a kubeconfig"),
        ({}, "current-context isn't set"),
        ({**document(), "contexts": []}, "context 'main' doesn't exist"),
        ({**document(), "clusters": []}, "cluster 'c' doesn't exist"),
        ({**document(), "users": []}, "user 'u' doesn't exist"),
        ({**document(), "clusters": [{"name": "c", "cluster": {"server": "ftp://x"}}]}, "no usable server"),
        (document(**{"client-certificate": "nowhere.pem"}), "nowhere.pem"),
        (document(**{"client-key-data": "%%%"}), "client-key-data isn't base64"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_secret_with_it(tmp_path: Path, content: object, message: str):
    path = write(tmp_path / "config", content)
    with pytest.raises(KubeconfigError, match=message):
        load(path)


def test_a_secret_in_broken_yaml_isnt_quoted(tmp_path: Path):
    path = write(tmp_path / "config", "token: hunter2: [\n")
    with pytest.raises(KubeconfigError) as caught:
        load(path)
    assert "hunter2" not in str(caught.value)


def test_without_any_configuration_the_ways_to_give_one_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(KubeconfigError, match=r"--kubeconfig.*KUBECONFIG.*service account"):
        load()


def test_a_pod_uses_its_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    account = tmp_path / "serviceaccount"
    account.mkdir()
    for name in ("token", "ca.crt", "namespace"):
        (account / name).write_text(name)
    monkeypatch.setattr(kubeconfig, "_SERVICE_ACCOUNT", account)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    connection = load()
    assert connection.server == "https://[fd00::1]:6443"
    assert connection.credentials == TokenFile(path=account / "token")
    assert connection.namespace == "namespace"


def test_an_auth_provider_needs_the_official_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = write(tmp_path / "config", document(**{"auth-provider": {"name": "oidc"}}))
    assert isinstance(load(file).credentials, AuthProvider)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        KubeconfigError, match=r"config: .*'main' has an auth-provider.*pip install '\.\[auth-provider\]'"
    ):
        load(file)
