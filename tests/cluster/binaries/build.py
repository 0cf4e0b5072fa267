"""Build the programs of a Kubernetes control plane from pinned Go modules into a cache folder.

The three modules beside this file pin every version by their `go.mod` and `go.sum`; nothing is vendored and no binary
is kept in the repository. What is built lands in a folder whose name carries the versions and a digest of those files,
so that a machine pays for the build once, and again only when a pin changes. As a command: `python -m
tests.cluster.binaries.build`.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
MODULES = ("kubernetes", "etcd", "kwok")

# Kubernetes reads its own version at run time (skew checks, feature gates, `serverVersion`), and a build from modules
# would otherwise call itself v0.0.0-master with an empty major and minor.
VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")


@dataclass(frozen=True, slots=True)
class Mend:
    """A fault of a pinned module that is built without it: in `file` of the module, `wrong` becomes `right`."""

    module: str
    file: str
    wrong: str
    right: str


@dataclass(frozen=True, slots=True)
class Program:
    """One program of the test bed: its name, the module that pins it and the package that is built."""

    name: str
    module: str
    package: str
    mend: Mend | None = None


# A watch that the server ended (as it does to those that read too slowly) is asked for from version 0, which means
# everything anew: thousands of pods, during which the watch falls behind again, for as long as there is work. Tests
# live with that, and even by it: what kwok couldn't write while the server was away, it is told of once more.
_RESUME_WATCHES = Mend(
    module="sigs.k8s.io/kwok",
    file="pkg/utils/informer/event.go",
    wrong="if !o.EnableListPager || o.EnableStreamWatch {",
    right='if opts.ResourceVersion == "" && (!o.EnableListPager || o.EnableStreamWatch) {',
)


PROGRAMS = (
    Program("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
    Program("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    Program("kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    Program("kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
    Program("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
    Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    Program("kwok-resuming", "kwok", "sigs.k8s.io/kwok/cmd/kwok", _RESUME_WATCHES),
)


class BuildError(Exception):
    """A program of the test bed could not be built; the message names it and the end of what the compiler said."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """The folder where the programs of the test bed lie, each under its own name."""

    folder: Path

    def path(self, name: str) -> Path:
        """The file of the program `name`, e.g. `kube-apiserver`."""
        return self.folder / name

    @property
    def complete(self) -> bool:
        """Whether every program is there."""
        return all(self.path(program.name).is_file() for program in PROGRAMS)


def go() -> str | None:
    """The Go command: the one on the PATH, else the one where Go's own installer puts it; None without a toolchain."""
    return shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")


def pinned_version(module: str) -> str:
    """The version that `module`'s go.mod pins for what it builds, e.g. `v1.36.1`."""
    wanted = {"kubernetes": "k8s.io/kubernetes", "etcd": "go.etcd.io/etcd/server/v3", "kwok": "sigs.k8s.io/kwok"}[
        module
    ]
    text = (HERE / module / "go.mod").read_text(encoding="utf-8")
    found = re.search(rf"^(?:require)?\s*{re.escape(wanted)} (v\S+)", text, re.MULTILINE)
    if found is None:
        raise BuildError(f"{module}/go.mod pins no version of {wanted}")
    return found.group(1)


def cache() -> Binaries:
    """Where the programs of exactly these pins belong.

    Under `VCBATCH_TESTBED_CACHE`, else the user's cache folder (`XDG_CACHE_HOME`, else `~/.cache`).
    """
    digest = hashlib.sha256()
    for module in MODULES:
        for name in ("go.mod", "go.sum", "tools.go"):
            digest.update((HERE / module / name).read_bytes())
    digest.update(Path(__file__).read_bytes())
    root = os.environ.get("VCBATCH_TESTBED_CACHE")
    base = Path(root) if root else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vcbatch/testbed"
    versions = "-".join(f"{module}-{pinned_version(module)}" for module in MODULES)
    return Binaries(base / f"{versions}-{digest.hexdigest()[:12]}")


def _link_flags(version: str) -> str:
    major, minor, _ = version.removeprefix("v").split(".", 2)
    values = {
        "gitVersion": version,
        "gitMajor": major,
        "gitMinor": minor,
        "gitCommit": "0" * 40,
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
    }
    stamps = (f"-X {package}.{key}={value}" for package in VERSION_PACKAGES for key, value in values.items())
    return " ".join(("-s -w", *stamps))


def _build_one(compiler: str, program: Program, into: Path) -> None:
    flags = _link_flags(pinned_version("kubernetes")) if program.module == "kubernetes" else "-s -w"
    with tempfile.TemporaryDirectory(prefix=f".{program.name}.", dir=into) as folder:
        unfinished = Path(folder) / program.name
        flag = mended(compiler, program, program.mend, Path(folder)) if program.mend is not None else ()
        _run(
            program,
            [compiler, "build", *flag, "-trimpath", "-ldflags", flags, "-o", str(unfinished), program.package],
        )
        unfinished.rename(into / program.name)


def mended(compiler: str, program: Program, mend: Mend, folder: Path) -> tuple[str]:
    """The compiler's argument that has it build with a copy of the module, in which the fault is mended.

    The copy lies in `folder`, which is written to. Raises BuildError where the module has no such line.
    """
    module = json.loads(_run(program, [compiler, "mod", "download", "-json", mend.module]))
    copy = folder / "module"
    shutil.copytree(module["Dir"], copy, copy_function=shutil.copyfile)
    for inner in (copy, *(path for path in copy.rglob("*") if path.is_dir())):
        inner.chmod(0o755)  # the module cache is read-only
    file = copy / mend.file
    before, found, after = file.read_text(encoding="utf-8").partition(mend.wrong)
    if not found:
        raise BuildError(f"{program.name} could not be built: {mend.module} {module['Version']} has no `{mend.wrong}`")
    file.write_text(before + mend.right + after, encoding="utf-8")
    pins = folder / "go.mod"
    shutil.copyfile(HERE / program.module / "go.sum", folder / "go.sum")
    shutil.copyfile(HERE / program.module / "go.mod", pins)
    _run(program, [compiler, "mod", "edit", f"-replace={mend.module}={copy}", str(pins)])
    return (f"-modfile={pins}",)


def _run(program: Program, command: list[str]) -> str:
    done = subprocess.run(
        command,
        cwd=HERE / program.module,
        env=os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOWORK": "off"},
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise BuildError(f"{program.name} could not be built:\n{done.stderr[-4000:]}")
    return done.stdout


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build() -> Binaries:
    """Build what isn't there yet, one program after the other, and say how long each took.

    Two builders at once wait for each other. Raises BuildError without a Go toolchain or when a build fails.
    """
    binaries = cache()
    if binaries.complete:
        return binaries
    compiler = go()
    if compiler is None:
        raise BuildError("the test bed is built with Go, and no `go` is on the PATH or in /usr/local/go/bin")
    with _alone(binaries.folder):
        for program in PROGRAMS:
            if binaries.path(program.name).is_file():
                continue
            print(f"building {program.name} {pinned_version(program.module)} ...", end=" ", flush=True)
            began = time.monotonic()
            _build_one(compiler, program, binaries.folder)
            print(f"{time.monotonic() - began:.0f} s", flush=True)
    return binaries


def main() -> int:
    """Build, and print the folder."""
    try:
        print(build().folder)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
