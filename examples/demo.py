"""Run the main example from start to end: a PyTorch model trained by three pods on this machine.

`make demo` runs it, with a Python that has PyTorch first on the PATH: the pods use that `python`.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from vcbatch.api.resources import CONFIGMAPS, JOBS, PODGROUPS, PODS, Resource
from vcbatch.api.yaml_reader import documents
from vcbatch.interfaces import Api, ApiError, interpreter
from vcbatch.runtime.client.http import HttpApi
from vcbatch.runtime.client.kubeconfig import load
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom

HERE = Path(__file__).resolve().parent
MANIFEST = HERE / "pytorch-ddp.yaml"
JOB = "digits"
RANK0 = "digits-master-0"
NAMESPACE = "default"
ENOUGH = 0.95
PATIENCE = 300.0  # seconds without any change before the demo gives up
ENDED = ("Completed", "Failed", "Aborted", "Terminated")

console = Console(highlight=False)
BY_KIND = {"ConfigMap": CONFIGMAPS, "Job": JOBS}


class DemoError(Exception):
    """An error with a message for the user."""


def heading(text: str) -> None:
    console.print(f"\n[bold]{text}[/]")


def vcbatch(*arguments: str) -> str:
    command = interpreter.vcbatch(*arguments)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DemoError(f"`vcbatch {' '.join(arguments)}` failed:\n{done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


async def submit(api: Api, kubeconfig: Path) -> None:
    """Apply the manifest with the user's kubectl if there is one, otherwise with vcbatch's client."""
    shown = MANIFEST.relative_to(HERE.parent)
    kubectl = shutil.which("kubectl")
    if kubectl:
        console.print(f"  [dim]$[/] kubectl apply -f {shown}")
        command = [kubectl, "--kubeconfig", str(kubeconfig), "apply", "-f", str(MANIFEST)]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise DemoError(done.stderr.strip())
        for line in done.stdout.splitlines():
            console.print(f"  {line}")
        return
    console.print(f"  no kubectl on the PATH: submitting {shown} with vcbatch's own client")
    for document in (one.value for one in documents(MANIFEST.read_bytes())):
        await api.create(BY_KIND[document["kind"]], document, namespace=NAMESPACE)
        console.print(f"  {document['kind'].lower()}/{document['metadata']['name']} created")


class Screen:
    """Prints a line whenever the job, its gang or one of its pods changes, and every line of training."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.changed = self.started
        self.log: list[str] = []
        self.accuracy = 0.0
        self.ended = asyncio.Event()
        self.phase = ""
        self._last: dict[str, str] = {}

    def job(self, job: dict) -> None:
        self.phase = job_phase(job)
        self._state("job", self.phase)
        if self.phase in ENDED:
            self.ended.set()

    def gang(self, gang: dict) -> None:
        self._state("gang", gang_state(gang))

    def pod(self, pod: dict) -> None:
        self._state(pod["metadata"]["name"], pod_state(pod))

    def training_line(self, line: str) -> None:
        self.log.append(line)
        if found := re.fullmatch(r"test accuracy ([0-9.]+)", line):
            self.accuracy = float(found[1])
        self._print("rank 0", f"[cyan]{escape(line)}[/]")

    def _state(self, what: str, state: str) -> None:
        if state and self._last.get(what) != state:
            self._last[what] = state
            self._print(what, escape(state))

    def _print(self, what: str, text: str) -> None:
        self.changed = time.monotonic()
        console.print(f"  [dim]{self.changed - self.started:5.1f} s[/]  {what:<16} {text}")


def gang_state(gang: dict) -> str:
    status = gang.get("status") or {}
    phase = status.get("phase") or "Pending"
    members = gang["spec"]["minMember"]
    if phase not in ("Pending", "Inqueue"):
        return f"{phase}: all {members} members are placed" if phase == "Running" else phase
    for condition in status.get("conditions") or []:
        if condition["type"] == "Unschedulable" and condition["status"] == "True":
            return f"{phase}: {condition.get('message', '')}"
    return f"{phase}: waits until all {members} members can start"


def pod_state(pod: dict) -> str:
    status = pod.get("status") or {}
    phase = status.get("phase", "Pending")
    node = pod["spec"].get("nodeName")
    return f"{phase} on {node}" if node else f"{phase}, not placed yet"


def job_phase(job: dict) -> str:
    return ((job.get("status") or {}).get("state") or {}).get("phase", "")


async def show_training(api: HttpApi, screen: Screen) -> None:
    """Print the log of rank 0 as it is written, until its container has terminated.

    The end of a stream isn't the end of the log: a pod without a node returns an empty log, and a connection can break.
    Therefore the log is read again, without the lines that were printed already, until the pod has terminated.
    """
    shown: dict[str, int] = {}  # lines of each pod by UID: a restarted job has a new pod of the same name
    while True:
        try:
            pod = await api.get(PODS, RANK0, namespace=NAMESPACE)
            uid = pod["metadata"]["uid"]
            number = 0
            async for line in api.log_lines(RANK0, namespace=NAMESPACE, follow=True):
                number += 1
                if number > shown.get(uid, 0):
                    shown[uid] = number
                    screen.training_line(line.decode(errors="replace"))
            if pod["status"].get("phase") in ("Succeeded", "Failed"):
                return
        except ApiError as error:
            if error.code not in (0, 400, 404):  # broken connection, container not started, pod not created
                raise
            if error.code == 404 and screen.ended.is_set():
                return
        await asyncio.sleep(0.1)


async def follow(api: Api, resource: Resource, version: str, show: Callable[[dict], None]) -> None:
    """Show every object as it changes, from `version` on."""
    while True:
        try:
            async for event in api.watch(resource, namespace=NAMESPACE, resource_version=version):
                version = event.resource_version
                if event.type in ("ADDED", "MODIFIED"):
                    show(event.object)
        except ApiError as error:
            if error.code not in (0, 410):  # broken connection, version too old
                raise
            listed = await api.list(resource, namespace=NAMESPACE)
            version = listed.resource_version
            for item in listed.items:
                show(item)


async def until_ended(screen: Screen) -> None:
    while not screen.ended.is_set():
        if time.monotonic() - screen.changed > PATIENCE:
            raise DemoError(f"nothing has changed for {PATIENCE:.0f} s: see `kubectl describe vcjob {JOB}`")
        with suppress(TimeoutError):
            await asyncio.wait_for(screen.ended.wait(), timeout=1)


def summarise(screen: Screen, pods: list[dict]) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("  POD", "PHASE", "EXIT CODE", "RAN"):
        table.add_column(column, justify="right" if column in ("EXIT CODE", "RAN") else "left")
    for pod in sorted(pods, key=lambda pod: pod["metadata"]["name"]):
        table.add_row(f"  {pod['metadata']['name']}", pod["status"]["phase"], *exit_code_and_duration(pod))
    console.print(table)
    console.print(
        f"\n  job {JOB}: [bold]{screen.phase}[/] after {time.monotonic() - screen.started:.1f} s, "
        f"test accuracy [bold]{screen.accuracy:.4f}[/]"
    )


def exit_code_and_duration(pod: dict) -> tuple[str, str]:
    """The exit code and the run time of the pod's container; both are empty if it hasn't terminated."""
    for container in pod["status"].get("containerStatuses") or []:
        if ended := container["state"].get("terminated"):
            began, finished = (datetime.fromisoformat(ended[key]) for key in ("startedAt", "finishedAt"))
            return str(ended["exitCode"]), f"{(finished - began).total_seconds():.0f} s"
    return "", ""


async def play(api: HttpApi, kubeconfig: Path) -> tuple[Screen, list[dict]]:
    """Submit the job and show its progress until it has ended and its log is read. Returns its pods, too."""
    screen = Screen()
    shown = ((JOBS, screen.job), (PODGROUPS, screen.gang), (PODS, screen.pod))
    starts = [(await api.list(resource, namespace=NAMESPACE)).resource_version for resource, _ in shown]
    await submit(api, kubeconfig)
    heading("3  The gang waits, starts and trains")
    try:
        async with asyncio.TaskGroup() as tasks:
            watches = [
                tasks.create_task(follow(api, resource, version, show))
                for (resource, show), version in zip(shown, starts, strict=True)
            ]
            training = tasks.create_task(show_training(api, screen))
            await until_ended(screen)
            await asyncio.wait({training}, timeout=PATIENCE)
            for task in (training, *watches):
                task.cancel()
    except* (DemoError, ApiError) as failed:
        raise failed.exceptions[0] from None
    return screen, list((await api.list(PODS, namespace=NAMESPACE)).items)


async def demo(state: Path) -> None:
    console.print("[bold]vcbatch demo[/]: a PyTorch job on three pods of this machine")

    heading("1  Start vcbatch")
    began = time.monotonic()
    await asyncio.to_thread(vcbatch, "up", "--detach", "--port", "0", "--state-dir", str(state))
    kubeconfig = state / "kubeconfig"
    console.print(f"  ready after {time.monotonic() - began:.1f} s")

    async with HttpApi(load(kubeconfig), clock=SystemClock(), random=SystemRandom()) as api:
        heading("2  Submit the job")
        screen, pods = await play(api, kubeconfig)

    heading("4  The end")
    if screen.phase != "Completed":
        raise DemoError(f"the job ended {screen.phase}; rank 0 said:\n" + "\n".join(screen.log[-20:]))
    summarise(screen, pods)
    if screen.accuracy <= ENOUGH:
        raise DemoError(f"the accuracy {screen.accuracy:.4f} isn't above {ENOUGH}")


def main() -> int:
    code = 0
    with tempfile.TemporaryDirectory(prefix="vcbatch-demo-") as folder:
        state = Path(folder) / "state"
        try:
            asyncio.run(demo(state))
        except KeyboardInterrupt:
            console.print("\n  stopped")
            code = 130
        except (DemoError, ApiError) as error:
            console.print(f"\n  [red]error:[/] the demo failed: {escape(str(error))}")
            code = 1
        finally:
            try:
                vcbatch("down", "--state-dir", str(state))
            except DemoError as error:
                console.print(f"\n  [red]error:[/] {escape(str(error))}")
                code = code or 1
    if code == 0:
        console.print(
            "\n  Everything is stopped again. To go on yourself: [bold].venv/bin/vcbatch up[/],\n"
            "  and [bold]kubectl apply -f examples/anything.yaml[/] in another terminal.\n"
        )
    return code


if __name__ == "__main__":
    sys.exit(main())
