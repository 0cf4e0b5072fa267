"""Build the programs of the test bed from pinned Go modules into a cache folder.

The modules beside this file pin every version by their `go.mod` and `go.sum`; nothing is vendored and no binary is kept
in the repository. What a module builds lands in a folder whose name carries the version and a digest of its files, so
that a machine pays for the build once, and again only when a pin changes. As a command: `python -m
tests.cluster.binaries.build [PROGRAM...]`, by default all programs of the cluster tests.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.binaries.programs import CONTROL_PLANE, HELM, HERE, BuildError, Mend, Program, programs
from tests.support.caches import cache as kept
from tests.support.caches import locked

_ENVIRONMENT = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOWORK": "off"}
_FLAGS = ("-gcflags=all=-dwarf=false",)
"""Nobody debugs these programs: what the linker leaves out is not compiled either, which saves a tenth of the time.
Paths stay in them: the compiler's cache then finds a package by its folder, whichever module asks for it."""
_COLLECT = "400"
"""The compiler's GOGC unless one is set: a quarter less time for a fifth more memory, 450 MB at most for a package."""


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


def _build_together(compiler: str, group: Sequence[Program], into: Path) -> None:
    """Build programs of one module by one command, so that no processor waits for the end of each."""
    first = group[0]
    with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=into) as folder:
        made = Path(folder) / "made"
        made.mkdir()
        mend = mended(compiler, first, first.mend, Path(folder)) if first.mend is not None else ()
        # A folder gets files that are named for their packages; that of a single program is named here.
        to = f"{made}/" if len(group) > 1 else str(made / first.name)
        packages = [program.package for program in group]
        _run(first, [compiler, "build", *mend, *_FLAGS, "-ldflags", first.module.link_flags, "-o", to, *packages])
        for program in group:
            (made / program.name).rename(into / program.name)


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
        env={"GOGC": _COLLECT} | os.environ | _ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise BuildError(f"{program.name} could not be built:\n{done.stderr[-4000:]}")
    return done.stdout


def build(*names: str) -> Binaries:
    """Build what isn't there yet of the named programs, by default those of the control plane.

    One module after the other; a line says how long each took. Two builders of one module wait for each other. Raises
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
    for folder in dict.fromkeys(path.parent for path in binaries.paths.values()):
        with locked(folder / ".lock"):
            paths = [path for path in binaries.paths.values() if path.parent == folder]
            group = [known[path.name] for path in paths if not path.is_file()]
            if group:
                named = ", ".join(program.name for program in group)
                print(f"building {named} {group[0].module.version} ...", end=" ", flush=True)
                began = time.monotonic()
                _build_together(compiler, group, folder)
                print(f"{time.monotonic() - began:.0f} s", flush=True)
    return binaries


def main() -> int:
    """Build, and print where the programs are."""
    try:
        for path in build(*(sys.argv[1:] or (*CONTROL_PLANE, HELM))).paths.values():
            print(path)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
