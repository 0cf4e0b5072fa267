"""Credential plugins of client-go (`users[].user.exec`): a program that prints credentials for the server.

Source: k8s.io/client-go `plugin/pkg/client/auth/exec` and the API `client.authentication.k8s.io`. Every cloud provider
has one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vcbatch.api.loose import listed

Json = Mapping[str, Any]

_GROUP = "client.authentication.k8s.io"
_VERSIONS = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")
_CLUSTER_EXTENSION = f"{_GROUP}/exec"
_INFO = "KUBERNETES_EXEC_INFO"
_SECONDS = 60.0
"""Time limit, in seconds, of a plugin that isn't interactive."""
_MAX_BYTES = 1024 * 1024
_CLUSTER_FIELDS = (
    "server",
    "tls-server-name",
    "insecure-skip-tls-verify",
    "certificate-authority-data",
    "proxy-url",
)


class ExecPluginError(Exception):
    """The plugin returned no credentials. The message names its command, and never contains its output."""


def run(config: Json, *, folder: Path, cluster: Json) -> Json:
    """The `status` of the ExecCredential that the plugin prints; blocks until it has ended. `folder`: the directory of
    the kubeconfig, to which a command with a slash is relative. Raises `ExecPluginError`."""
    command, version = str(config.get("command") or ""), str(config.get("apiVersion") or "")
    if not command:
        raise ExecPluginError("the kubeconfig's exec entry has no command")
    if version not in _VERSIONS:
        raise ExecPluginError(f"the plugin {command!r} has apiVersion {version!r}; known: {', '.join(_VERSIONS)}")
    interactive = _interactive(config, command)
    program = str(folder / command) if os.sep in command else command
    environment = {**os.environ, _INFO: json.dumps(_info(config, cluster, interactive=interactive))}
    for pair in listed(config, "env"):
        if isinstance(pair, dict):
            environment[str(pair.get("name"))] = str(pair.get("value"))
    return _status(
        _printed([program, *map(str, listed(config, "args"))], environment, interactive, config), command, version
    )


def _interactive(config: Json, command: str) -> bool:
    mode = config.get("interactiveMode") or "IfAvailable"
    if mode not in ("Never", "IfAvailable", "Always"):
        raise ExecPluginError(f"the plugin {command!r} has interactiveMode {mode!r}; known: Never, IfAvailable, Always")
    somebody = sys.stdin is not None and sys.stdin.isatty()
    if mode == "Always" and not somebody:
        raise ExecPluginError(f"the plugin {command!r} has to ask somebody, and standard input is no terminal")
    return mode != "Never" and somebody


def _info(config: Json, cluster: Json, *, interactive: bool) -> Json:
    spec: dict[str, Any] = {"interactive": interactive}
    if config.get("provideClusterInfo"):
        cluster_info = {key: cluster[key] for key in _CLUSTER_FIELDS if cluster.get(key)}
        for extension in listed(cluster, "extensions"):
            if isinstance(extension, dict) and extension.get("name") == _CLUSTER_EXTENSION:
                cluster_info["config"] = extension.get("extension")
        spec["cluster"] = cluster_info
    return {"apiVersion": config["apiVersion"], "kind": "ExecCredential", "spec": spec}


def _printed(command: list[str], environment: Mapping[str, str], interactive: bool, config: Json) -> bytes:
    """The plugin's standard output. Its standard error, such as instructions to log in, is passed to ours."""
    name = str(config["command"])
    try:
        with subprocess.Popen(
            command, env=environment, stdin=None if interactive else subprocess.DEVNULL, stdout=subprocess.PIPE
        ) as plugin:
            try:
                printed, _ = plugin.communicate(timeout=None if interactive else _SECONDS)
            except BaseException:
                plugin.kill()
                raise
    except subprocess.TimeoutExpired:
        raise ExecPluginError(f"the plugin {name!r} didn't end in {_SECONDS:.0f} s") from None
    except OSError as error:
        hint = str(config.get("installHint") or "").strip()
        raise ExecPluginError(
            f"the plugin {name!r} can't be run: {error.strerror}{f'. {hint}' if hint else ''}"
        ) from error
    if plugin.returncode:
        raise ExecPluginError(f"the plugin {name!r} failed with exit code {plugin.returncode}")
    return printed


def _status(printed: bytes, command: str, version: str) -> Json:
    try:
        credential = json.loads(printed) if len(printed) <= _MAX_BYTES else None
    except (ValueError, RecursionError):
        credential = None
    if not isinstance(credential, dict) or credential.get("kind") != "ExecCredential":
        raise ExecPluginError(f"the plugin {command!r} printed no ExecCredential")
    if credential.get("apiVersion") != version:
        said = str(credential.get("apiVersion"))[:100]
        raise ExecPluginError(f"the plugin {command!r} answers in {said!r}, and the kubeconfig asks for {version!r}")
    status = credential.get("status")
    return status if isinstance(status, dict) else {}
