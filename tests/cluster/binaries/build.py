"""Build the programs of the test bed from pinned Go modules into a cache folder.

The modules beside this file pin every version by their `go.mod` and `go.sum`; nothing is vendored and no binary is kept
in the repository. What a module builds lands in a folder whose name carries the version and a digest of its files, so
that a machine pays for the build once, and again only when a pin changes. As a command: `python -m
tests.cluster.binaries.build [PROGRAM...]`, by default all programs of the control plane.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.binaries.programs import CONTROL_PLANE, HERE, BuildError, Mend, Program, programs
from tests.support.caches import cache as kept
from tests.support.caches import locked


@dataclass(frozen=True, slots=True)
class Binaries:
    """Where the chosen programs of the test bed lie."""

    paths: dict[str, Path]
    """The file of each program, by its name."""

    def path(self, name: str) -> Path:
        """The file of the program `name`, e.g. `kube-apiserver`."""
        return self.paths[name]

    @property
    def complete(self) -> bool:
        """Whether every program is there."""
        return all(path.is_file() for path in self.paths.values())


def go() -> str | None:
    """The Go command: the one on the PATH, else the one where Go's own installer puts it; None without a toolchain."""
    return shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")


def cache(*names: str) -> Binaries:
    """Where the named programs (by default those of the control plane) of exactly these pins belong.

    Under `VCBATCH_TESTBED_CACHE`, else the user's cache folder (`XDG_CACHE_HOME`, else `~/.cache`). Raises BuildError
    for a version of Kubernetes that isn't pinned.
    """
    known = programs()
    return Binaries({name: _folder(known[name]) / name for name in names or CONTROL_PLANE})


def _folder(program: Program) -> Path:
    module = program.module
    digest = hashlib.sha256(f"{module.link_flags}\n{program.mend}".encode())
    for file in sorted((HERE / module.folder).iterdir()):
        digest.update(f"{file.name}\n".encode() + file.read_bytes())
    root = os.environ.get("VCBATCH_TESTBED_CACHE")
    base = Path(root) if root else kept() / "testbed"
    return base / f"{module.folder.split('-')[0]}-{module.version}-{digest.hexdigest()[:12]}"


def _build_one(compiler: str, program: Program, into: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=f".{program.name}.", dir=into) as folder:
        unfinished = Path(folder) / program.name
        flag = mended(compiler, program, program.mend, Path(folder)) if program.mend is not None else ()
        flags = program.module.link_flags
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
    shutil.copyfile(HERE / program.module.folder / "go.sum", folder / "go.sum")
    shutil.copyfile(HERE / program.module.folder / "go.mod", pins)
    _run(program, [compiler, "mod", "edit", f"-replace={mend.module}={copy}", str(pins)])
    return (f"-modfile={pins}",)


def _run(program: Program, command: list[str]) -> str:
    done = subprocess.run(
        command,
        cwd=HERE / program.module.folder,
        env=os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOWORK": "off"},
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise BuildError(f"{program.name} could not be built:\n{done.stderr[-4000:]}")
    return done.stdout


def build(*names: str) -> Binaries:
    """Build what isn't there yet of the named programs, by default those of the control plane.

    One program after the other; a line says how long each took. Two builders of one program wait for each other. Raises
    BuildError without a Go toolchain, for an unknown program, or when a build fails.
    """
    known = programs()
    if unknown := sorted(set(names) - set(known)):
        raise BuildError(f"the test bed has no program {unknown[0]}; it has {', '.join(known)}")
    binaries = cache(*names)
    if binaries.complete:
        return binaries
    compiler = go()
    if compiler is None:
        raise BuildError("the test bed is built with Go, and no `go` is on the PATH or in /usr/local/go/bin")
    for name, path in binaries.paths.items():
        with locked(path.parent / ".lock"):
            if path.is_file():
                continue
            print(f"building {name} {known[name].module.version} ...", end=" ", flush=True)
            began = time.monotonic()
            _build_one(compiler, known[name], path.parent)
            print(f"{time.monotonic() - began:.0f} s", flush=True)
    return binaries


def main() -> int:
    """Build, and print where the programs are."""
    try:
        for path in build(*sys.argv[1:]).paths.values():
            print(path)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
