"""What a person types: kubectl's output, errors and exit code, command by command, against both servers.

`cases/*.yaml` are sessions, each in a namespace of its own: `about`, `files` (name to content, in the folder where the
commands run) and `steps`. A step is a command line, or `{run: …, in: standard input, editor: shell command for `kubectl
edit`, lines: sorted}` with its output's lines in any order. `<ns>` is the session's namespace.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.binaries.build import cache
from tests.fidelity.golden import Answers
from tests.fidelity.normalise import Normaliser
from tests.fidelity.servers import Server

CASES = Path(__file__).parent / "cases"
VERSION = "v1.36."
"""The kubectl whose words the golden files hold."""
_TIMEOUT = 120.0
_AGE = re.compile(r"(?<![\w.-])(?:<invalid>|<unknown>|\d+(?:\.\d+)?(?:ms|s)|(?:\d+[dhm])+(?:\d+[hms])?)(?![\w./-])")
_BLANKS = re.compile(r" {2,}|\t+")
_DATE = re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}")
_LOG_TIME = re.compile(r"^([EIW])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ", re.MULTILINE)
_RETRY = re.compile(r"^[EIW]TIME reflector\.go")
"""What kubectl's client says of watches that end and begin again, which is a matter of moments."""
_VERSIONED = re.compile(r'((?:resourceVersion|"resourceVersion"|Resource Version)"?: ?"?)\d+')


class NoKubectl(Exception):
    """There is no kubectl of the recorded version; says so."""


def find() -> Path:
    """kubectl as built for the test bed, or the machine's where it is of the same version. Raises `NoKubectl`."""
    built = cache("kubectl")
    if built.complete:
        return built.path("kubectl")
    own = shutil.which("kubectl")
    if own is None:
        raise NoKubectl("no kubectl: neither built by `make testbed` nor on the PATH")
    said = subprocess.run([own, "version", "--client"], capture_output=True, text=True, check=False).stdout
    if VERSION not in said:
        raise NoKubectl(f"the answers of kubectl {VERSION}* are recorded, and the one on the PATH is another")
    return Path(own)


@dataclass(frozen=True, slots=True)
class Step:
    run: str
    stdin: str | None = None
    editor: str = ""
    sorted: bool = False


@dataclass(frozen=True, slots=True)
class Session:
    name: str
    files: Mapping[str, str]
    steps: Sequence[Step]


def names() -> list[str]:
    return sorted(path.stem for path in CASES.glob("*.yaml"))


def session(name: str) -> Session:
    """The session in a file. Raises ValueError for a step that isn't understood."""
    content = yaml.safe_load((CASES / f"{name}.yaml").read_text(encoding="utf-8"))
    return Session(name, content.get("files", {}), [_step(raw) for raw in content["steps"]])


def _step(raw: str | dict[str, Any]) -> Step:
    if isinstance(raw, str):
        return Step(raw)
    if unknown := set(raw) - {"run", "in", "editor", "lines"}:
        raise ValueError(f"unknown keys {sorted(unknown)}")
    return Step(raw["run"], raw.get("in"), raw.get("editor", ""), raw.get("lines") == "sorted")


def play(server: Server, chosen: Sequence[str], settled: Callable[[], None] = lambda: None) -> dict[str, Answers]:
    """The answers of the chosen sessions, or of all, several at a time. Nothing is `settled`: deletions wait for the
    controllers of a real server."""
    program = find()
    wanted = [session(name) for name in names() if not chosen or name in chosen]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(4) as pool:
        players = [_Player(server, program, one, Path(folder)) for one in wanted]
        list(pool.map(_Player.prepare, players))
        return dict(zip([one.name for one in wanted], pool.map(_Player.play, players), strict=True))


class _Player:
    def __init__(self, server: Server, program: Path, session: Session, folder: Path) -> None:
        self._server = server
        self._session = session
        self._folder = folder / session.name
        self._namespace = f"k-{session.name}"
        self._command = [
            str(program), "--kubeconfig", str(server.kubeconfig), "--cache-dir", str(folder / "cache"),
        ]  # fmt: skip
        self._normaliser = Normaliser()

    def prepare(self) -> None:
        """Write the files, and make the namespace."""
        self._folder.mkdir()
        for name, content in self._session.files.items():
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._filled(content), encoding="utf-8")
        self._call(["create", "namespace", self._namespace])
        for made in ("serviceaccount/default", "configmap/kube-root-ca.crt"):
            wait = f"wait --for=create {made} -n {self._namespace} --timeout=60s"
            done = self._call(wait.split())
            assert done.returncode == 0, done.stderr

    def play(self) -> Answers:
        return list(self._answers())

    def _answers(self) -> Iterator[tuple[str, Any]]:
        for step in self._session.steps:
            words = shlex.split(self._filled(step.run))
            done = self._call(["-n", self._namespace, *words], step)
            yield (
                step.run,
                {
                    "code": done.returncode,
                    "out": self._lines(done.stdout, step),
                    "err": self._lines(done.stderr, step),
                },
            )

    def _filled(self, text: str) -> str:
        return text.replace("<ns>", self._namespace)

    def _call(self, words: Sequence[str], step: Step | None = None) -> subprocess.CompletedProcess[str]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("KUBE", "HTTP", "http"))}
        if step and step.editor:
            environment["KUBE_EDITOR"] = step.editor
        return subprocess.run(
            [*self._command, *words],
            input=self._filled((step and step.stdin) or ""), env=environment, cwd=self._folder, capture_output=True,
            text=True, timeout=_TIMEOUT, check=False,
        )  # fmt: skip

    def _lines(self, text: str, step: Step) -> list[str]:
        """The text line by line, with what two runs never have alike replaced. The width of columns follows from
        ages and is left out."""
        text = text.replace(self._namespace, "NS").replace(self._server.url, "SERVER").replace(str(self._folder), "DIR")
        text = self._normaliser.text(_DATE.sub("TIME", text))
        text = _VERSIONED.sub(r"\1RV", _LOG_TIME.sub(r"\1TIME ", text))
        reported = [line for line in text.splitlines() if not _RETRY.search(line)]
        lines = [_BLANKS.sub("  ", _AGE.sub("AGE", line)).rstrip() for line in reported]
        return sorted(lines) if step.sorted else lines
