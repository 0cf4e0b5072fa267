"""The settings of a kubelet, and the part of the user's environment that containers inherit."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vcbatch.local.environments import Environments
from vcbatch.local.kubelet.kept_logs import KeptLogs
from vcbatch.local.kubelet.sandbox import Mode

INHERITED = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH",
    "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "LD_LIBRARY_PATH", "XDG_CACHE_HOME", "HF_HOME", "TORCH_HOME",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NO_PROXY", "no_proxy",
)  # fmt: skip
"""Variables of the shell in which vcbatch was started that every container gets, unless it sets them itself."""

INHERITED_PREFIXES = ("LC_", "CUDA_", "NCCL_", "GLOO_", "ROCM_")

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
"""Also inherited, without the username and password that a proxy's address may have: programs print their
environment."""

_NEVER = ("CUDA_VISIBLE_DEVICES",)
_USER_INFO = re.compile(r"^([a-z][a-z0-9+.-]*://)?.*@", re.IGNORECASE)


def inherited_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that containers inherit. KUBECONFIG and everything that may be secret is left out."""
    inherited = {
        name: value
        for name, value in environment.items()
        if (name in INHERITED or name.startswith(INHERITED_PREFIXES)) and name not in _NEVER
    }
    proxies = {name: _USER_INFO.sub(r"\1", environment[name]) for name in PROXIES if name in environment}
    return inherited | proxies


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletConfig:
    """Settings of one kubelet.

    `root` is its own directory (0700), with the records of its pods and how they ended. `mode` is None for the best one
    that works. Durations are in seconds.
    """

    root: Path
    node_name: str = "local"
    mode: Mode | None = None
    max_pods: int = 500
    working_dir: Path = field(default_factory=Path.cwd)
    environment: Mapping[str, str] = field(default_factory=lambda: inherited_environment(os.environ))
    environments: Environments | None = None
    """Where the environments of submitting shells are stored; None where pods can't have one."""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    capacity: Mapping[str, str] = field(default_factory=dict[str, str])
    """Overrides of the detected capacity of this machine, such as `{"cpu": "8"}`."""
    pin_cpus: bool = True
    concurrent_starts: int = 8
    shutdown_grace: float = 10.0
    """The longest grace period of containers when the kubelet stops; shorter where the pod's is."""
    memory_check_seconds: float = 1.0
    heartbeat_seconds: float = 300.0
    lost_versions: Sequence[Container[int]] = ()
    """Resource versions whose writes the API server has lost: a recorded pod with one of them that the server doesn't
    know is left running."""
    log_max_bytes: int = 10 * 1024 * 1024
    log_max_files: int = 5
    kept_logs: KeptLogs | None = None
    """The logs of deleted pods; None for a kubelet that deletes logs with their pods."""
