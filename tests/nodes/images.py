"""The images that the nodes have: what a registry would serve, since nothing is pulled."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.nodes import oci
from tests.support import debian
from tests.support.caches import digest, made_once

PAUSE = "registry.k8s.io/pause:3.10"
BUSYBOX = "docker.io/library/busybox:1.37"
WAITS_FOR_MASTER = "docker.io/library/busybox:1.36.1"
"""The default image of `--wait-master-enabled`."""
MPI = "docker.io/mpioperator/openmpi:latest"
"""Open MPI, ssh and Python with mpi4py: what `examples/mpi.yaml` needs, and Python for other tests."""
COREDNS = "registry.k8s.io/coredns/coredns:v1.15.0"

_ACCOUNTS = {
    "etc/passwd": b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "etc/group": b"root:x:0:\nnogroup:x:65534:\n",
}


_MPI_PACKAGES = ("busybox-static", "openmpi-bin", "openssh-client", "openssh-server", "python3-mpi4py")
_MPI_APPLETS = (
    "cat", "date", "echo", "env", "grep", "hostname", "id", "ls", "mkdir", "nc", "ps", "rm", "sed", "seq", "sh",
    "sleep", "tr", "true", "uname", "which",
)  # fmt: skip
_LEFT_OUT = (
    "etc/ssh", "usr/include", "usr/lib/systemd", "usr/share/X11", "usr/share/doc", "usr/share/lintian",
    "usr/share/locale", "usr/share/man",
    # For graphics cards: two thirds of it all.
    "usr/lib/*/libLLVM*", "usr/lib/*/libamd*", "usr/lib/*/libhsa*", "usr/lib/*/libz3*",
)  # fmt: skip


def archives(coredns: Path) -> list[Path]:
    """OCI archives of all images but vcbatch's, written once per machine. Raises DebianError."""
    version = Path(__file__).read_bytes() + Path(oci.__file__).read_bytes()
    busybox = debian.root("busybox", ("busybox-static",))
    mpi = debian.root("mpi", _MPI_PACKAGES)

    def kept(name: str, source: Path, write: Callable[[Path], None]) -> Path:
        key = digest([version, str(source)])
        return made_once(f"archives/{name}", key, lambda folder: write(folder / "archive.tar")) / "archive.tar"

    return [
        kept("small", busybox, lambda path: _write_small(path, busybox / "usr/bin/busybox")),
        kept("mpi", mpi, lambda path: _write_mpi(path, mpi)),
        kept("coredns", coredns, lambda path: _write_coredns(path, coredns)),
    ]


def _write_small(path: Path, program: Path) -> None:
    """busybox, and a pause image that is the same with another command."""
    applets = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split()
    layer = oci.files(
        {
            "bin": None, "etc": None, "root": None, "tmp": None,
            **_ACCOUNTS,
            "bin/busybox": program.read_bytes(),
            **{f"bin/{name}": "busybox" for name in applets if name != "busybox"},
        },
        modes={"bin/busybox": 0o755},
    )  # fmt: skip
    path_of = {"Env": ["PATH=/bin"]}
    oci.write(
        path,
        *(
            oci.Image(name=name, layers=[layer], config={**path_of, "Cmd": ["sh"]})
            for name in (BUSYBOX, WAITS_FOR_MASTER)
        ),
        # A sandbox is ended with SIGKILL; all that it has to do is to be there.
        oci.Image(name=PAUSE, layers=[layer], config={**path_of, "Entrypoint": ["sleep", "2147483647"]}),
    )


def _write_mpi(path: Path, root: Path) -> None:
    """Debian's Open MPI, ssh and mpi4py, on a root file system of their own, and the links that no script made."""
    links = {f"usr/bin/{name}": "busybox" for name in _MPI_APPLETS if not (root / "usr/bin" / name).exists()}
    settings = oci.files(
        {
            "run/sshd": None,
            "etc/ssh": None,
            **links,
            **{f"usr/bin/{name}": f"{name}.openmpi" for name in ("mpirun", "mpiexec")},
            "etc/passwd": _ACCOUNTS["etc/passwd"] + b"sshd:x:100:65534::/run/sshd:/bin/false\n",
            "etc/group": _ACCOUNTS["etc/group"],
            "etc/ssh/sshd_config": b"UsePAM no\nPermitRootLogin prohibit-password\nStrictModes no\n",
            "etc/ssh/ssh_host_ed25519_key": _host_key(),
        },
        modes={"etc/ssh/ssh_host_ed25519_key": 0o600},
    )  # fmt: skip
    oci.write(
        path,
        oci.Image(name=MPI, layers=[oci.folder(root, without=_LEFT_OUT), settings], config={"Cmd": ["sh"]}),
    )


def _host_key() -> bytes:
    """A key of sshd, which has none but those that a script of its package makes."""
    return Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())


def _write_coredns(path: Path, program: Path) -> None:
    layer = oci.files({"coredns": program.read_bytes()}, modes={"coredns": 0o755})
    oci.write(path, oci.Image(name=COREDNS, layers=[layer], config={"Entrypoint": ["/coredns"]}))
