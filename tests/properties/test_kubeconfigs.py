"""Whatever stands in a kubeconfig, it is read or refused in words, and no secret of it is repeated."""

from __future__ import annotations

import base64
import copy
import tempfile
from pathlib import Path
from typing import Any

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from vcbatch.cli.base.output import CliError
from vcbatch.cli.base.reach import Access
from vcbatch.runtime.client.kubeconfig import KubeconfigError, load

SECRET = "s3cr3t-of-somebody"
ENCODED = base64.b64encode(SECRET.encode()).decode()
WHOLE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "preferences": {},
    "current-context": "main",
    "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
    "clusters": [
        {
            "name": "c",
            "cluster": {
                "server": "https://example:6443",
                "certificate-authority-data": ENCODED,
                "proxy-url": f"http://me:{SECRET}@proxy:3128",
                "tls-server-name": "example",
                "insecure-skip-tls-verify": False,
            },
        }
    ],
    "users": [
        {
            "name": "u",
            "user": {
                "tokenFile": "token",
                "token": SECRET,
                "username": "me",
                "password": SECRET,
                "client-certificate-data": ENCODED,
                "client-key-data": ENCODED,
                "client-certificate": "client.pem",
                "client-key": "client.key",
                "as": "other",
                "as-groups": ["a"],
                "as-user-extra": {"scopes": ["view"]},
                "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "command": "login",
                    "args": ["--of", "me"],
                    "env": [{"name": "KEY", "value": SECRET}],
                    "interactiveMode": "Never",
                },
            },
        }
    ],
}
ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.dates()
    | st.sampled_from(
        [
            "",
            "\x00",
            "é",
            "~nobody-of-this-name/x",
            "..",
            "/",
            "!!",
            "https://",
            "http://[",
            "https://x:99999999",
            "-----BEGIN",
        ]
    )
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=8),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(st.text("ab-", max_size=4), below, max_size=2),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to each value in it."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in below for place in places(one, (*path, key)))][0 if path else 1 :]


PLACES = places(WHOLE)


@st.composite
def mutants(draw: st.DrawFn) -> Any:
    """The whole kubeconfig with a few values replaced or left out."""
    document = copy.deepcopy(WHOLE)
    for *above, last in draw(st.lists(st.sampled_from(PLACES), max_size=4, unique=True)):
        holder: Any = document
        try:
            for key in above:
                holder = holder[key]
            if draw(st.booleans()):
                holder[last] = draw(ODD)
            else:
                del holder[last]
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away
    return document


def said(text: str | bytes) -> str:
    """What a command would say of a file with this in it; empty where it finds its server."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "config")
        file.write_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
        try:
            connection = load(file)
            connection.ssl_context()
        except KubeconfigError as error:
            assert str(error).strip()
            shown = f"{error}"
        else:
            assert connection.server.startswith(("http://", "https://"))
            assert isinstance(connection.namespace, str) and connection.namespace
            shown = repr(connection)
        try:
            Access(kubeconfig=file).connection()
        except CliError as error:
            shown += f"{error} {error.hint}"
        return shown


def changed(section: str, **values: Any) -> Any:
    """The whole with these values in the one entry of a section."""
    document = copy.deepcopy(WHOLE)
    (entry,) = document[f"{section}s"]
    entry[section].update(values)
    return document


@example(document=WHOLE)
@example(document={**WHOLE, "users": 1})
@example(document=changed("user", tokenFile="~nobody-of-this-name/x"))
@example(document=changed("user", tokenFile="a\x00b"))
@example(document=changed("cluster", **{"certificate-authority-data": "é"}))
@example(document=changed("cluster", server="http://example:8080"))
@given(mutants())
def test_no_document_surprises(document: Any) -> None:
    shown = said(yaml.safe_dump(document))
    assert SECRET not in shown
    assert ENCODED not in shown


@given(st.binary(max_size=60) | st.text("{}[]:,-&*!|> \n\t'\"a1%@`", max_size=40))
def test_no_bytes_surprise(content: str | bytes) -> None:
    said(content)


def test_a_secret_that_is_said_would_be_noticed() -> None:
    assert SECRET in said(yaml.safe_dump({**WHOLE, "current-context": SECRET}))
