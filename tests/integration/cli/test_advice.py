"""What `job explain` advises, typed as it stands: the job then starts."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.processes import wait_until
from tests.integration.cli.conftest import Said, Shell
from tests.support.up import RunningVcbatch

pytestmark = [
    pytest.mark.xdist_group("cli-advice"),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on the PATH"),
]

Json = dict[str, Any]
NAMESPACE = "default"
_VOLUME = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
FILES = {
    "PersistentVolumeClaim": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": _VOLUME},
}


class Person:
    """Types what is advised, and fills in what a person has to know."""

    def __init__(self, program: RunningVcbatch, shell: Shell) -> None:
        self.program = program
        self.shell = shell

    def kubectl(self, *arguments: str) -> str:
        return self.program.kubectl(*arguments).ok()

    def undo(self, *arguments: str) -> None:
        """As `kubectl`, at the end of a test."""
        self.kubectl(*arguments)

    def apply(self, body: Json) -> None:
        self.program.kubectl("apply", "-f", "-", stdin=json.dumps(body)).ok()

    def explained(self, name: str) -> Json:
        return json.loads(self.shell.run("job", "explain", name, "-o", "json").ok())

    def phase(self, name: str) -> str:
        return self.shell.run("job", "get", name, "-o", "jsonpath={.status.state.phase}").ok()

    def type(self, command: str, words: Mapping[str, str]) -> None:
        for placeholder, word in words.items():
            command = re.sub(rf"\b{placeholder}\b", word, command)
        program, *arguments = shlex.split(command)
        if program == "kubectl":
            self.kubectl(*arguments)
        else:
            done: Said = self.shell.run(*arguments)
            done.ok()


@pytest.fixture
def person(program: RunningVcbatch, shell: Shell) -> Person:
    return Person(program, shell)


def job(name: str, *, queue: str = "default", pod: Json | None = None, **spec: Any) -> Json:
    container = {"name": "m", "image": "x", "command": ["sleep", "inf"], **(pod or {}).pop("container", {})}
    template = {"spec": {"restartPolicy": "Never", "containers": [container], **(pod or {})}}
    task = {"name": "w", "replicas": 1, "template": template}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"minAvailable": 1, "queue": queue, "tasks": [task], **spec},
    }


def commands(advice: list[str], *, about: str = "") -> list[str]:
    """The commands in those sentences that have the words."""
    found = (re.search(r": ((?:kubectl|vcbatch) .+)$", sentence) for sentence in advice if about in sentence)
    return [one[1] for one in found if one is not None]


def volume(name: str, **source: Any) -> Json:
    return {"name": name, **source}


EVERYTHING: Json = {
    "serviceAccountName": "runner",
    "priorityClassName": "urgent",
    "volumes": [
        volume("data", persistentVolumeClaim={"claimName": "data"}),
        volume("keys", secret={"secretName": "keys"}),
        volume("maybe", configMap={"name": "maybe", "optional": True}),
        volume("hosts", configMap={"name": "missing-all-svc"}),
    ],
    "container": {"envFrom": [{"configMapRef": {"name": "settings"}}]},
}


def test_all_that_is_missing_is_named_at_once_and_the_job_starts_once_it_is_created(person: Person) -> None:
    person.apply(job("missing-all", pod=dict(EVERYTHING), plugins={"svc": []}))
    wanted = {
        ("ServiceAccount", "runner"),
        ("PriorityClass", "urgent"),
        ("PersistentVolumeClaim", "data"),
        ("Secret", "keys"),
        ("ConfigMap", "settings"),
    }
    reported = person.explained("missing-all")
    assert {(one["kind"], one["name"]) for one in reported["missing"]} == wanted

    def written() -> bool:
        state = json.loads(person.shell.run("job", "get", "missing-all", "-o", "json").ok())["status"]["state"]
        return all(f"{kind} {name}" in state.get("message", "") for kind, name in wanted)

    wait_until("the job's status names them", written)
    (person.shell.folder / "settings.txt").write_text("x")
    for command in commands(person.explained("missing-all")["advice"], about="Create "):
        claim = {**FILES["PersistentVolumeClaim"], "metadata": {"name": "data"}}
        (person.shell.folder / "claim.json").write_text(json.dumps(claim))
        file = "claim.json" if " -f " in command else "settings.txt"
        person.type(command, {"FILE": str(person.shell.folder / file), "NUMBER": "5"})
    wait_until("it runs", lambda: person.phase("missing-all") == "Running")
    assert "missing" not in person.explained("missing-all")
    person.shell.run("job", "delete", "missing-all").ok()


def _cordoned(person: Person) -> Callable[[], None]:
    (node,) = person.kubectl("get", "nodes", "-o", "name").split()
    person.kubectl("cordon", node.partition("/")[2])
    person.apply(job("start-cordoned"))
    return lambda: person.undo("uncordon", node.partition("/")[2])


def _selected(person: Person) -> Callable[[], None]:
    person.apply(job("start-selected", pod={"nodeSelector": {"disk": "fast"}}))
    (node,) = person.kubectl("get", "nodes", "-o", "name").split()
    return lambda: person.undo("label", node, "disk-")


def _tainted(person: Person) -> Callable[[], None]:
    (node,) = person.kubectl("get", "nodes", "-o", "name").split()
    person.kubectl("taint", "nodes", node.partition("/")[2], "example.com/held=yes:NoSchedule")
    person.apply(job("start-tainted"))
    return lambda: None


def _claim_of_the_job(person: Person) -> Callable[[], None]:
    person.apply(job("start-claim", volumes=[{"mountPath": "/tmp/start-claim", "volumeClaimName": "given"}]))
    return lambda: None


STATES: dict[str, tuple[Callable[[Person], Callable[[], None]], str, dict[str, str]]] = {
    "start-cordoned": (_cordoned, "As an administrator: kubectl uncordon", {}),
    "start-selected": (_selected, "Or, as an administrator, label nodes", {"KEY=VALUE": "disk=fast"}),
    "start-tainted": (_tainted, "Or, as an administrator, remove the taint", {}),
    "start-claim": (_claim_of_the_job, "Create PersistentVolumeClaim given", {}),
}


@pytest.mark.parametrize("name", STATES)
def test_a_job_starts_once_somebody_does_what_is_advised(person: Person, name: str, tmp_path: Path) -> None:
    prepare, about, words = STATES[name]
    restore = prepare(person)
    (node,) = person.kubectl("get", "nodes", "-o", "name").split()
    claim = {**FILES["PersistentVolumeClaim"], "metadata": {"name": "given"}}
    (tmp_path / "claim.json").write_text(json.dumps(claim))
    try:
        wait_until("there is such advice", lambda: bool(commands(person.explained(name)["advice"], about=about)))
        assert not any("resubmit it: vcbatch cluster" in said for said in person.explained(name)["advice"])
        (command,) = commands(person.explained(name)["advice"], about=about)
        person.type(command, {"NODE": node.partition("/")[2], "FILE": str(tmp_path / "claim.json"), **words})
        wait_until("it runs", lambda: person.phase(name) == "Running")
    finally:
        restore()
        person.shell.run("job", "delete", name)


@pytest.mark.parametrize("how", ["elsewhere", "queue created"])
def test_a_finished_job_whose_queue_is_gone_runs_again(person: Person, how: str) -> None:
    queue = f"gone-{how.partition(' ')[0]}"
    name = f"again-{how.partition(' ')[0]}"
    person.shell.run("queue", "create", queue).ok()
    body = job(name, queue=queue)
    body["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["command"] = ["false"]
    body["spec"]["maxRetry"] = 1
    person.apply(body)
    wait_until("it failed", lambda: person.phase(name) in ("Failed", "Aborted", "Terminated"))
    wait_until("its queue can be closed", lambda: person.shell.run("queue", "close", queue).code == 0)

    def deleted() -> bool:
        return person.shell.run("queue", "delete", queue).code == 0

    wait_until("its queue is deleted", deleted)
    advice = person.explained(name)["advice"]
    assert not any(said.endswith(f"vcbatch job requeue {name}") for said in advice), advice
    if how == "elsewhere":
        (command,) = commands(advice, about="in another")
        person.type(command, {"QUEUE": "default"})
    else:
        (command,) = commands(advice, about="create the queue")
        person.type(command, {})
        (again,) = commands(person.explained(name)["advice"], about="Run it again")
        person.type(again, {})
    wait_until("a new one ended too", lambda: person.phase(f"{name}-r2") in ("Failed", "Aborted", "Terminated"))
    for each in (name, f"{name}-r2"):
        person.shell.run("job", "delete", each).ok()


def test_a_suspended_job_goes_on(person: Person) -> None:
    person.shell.run("queue", "create", "vanishing").ok()
    person.apply(job("orphan", queue="vanishing"))
    wait_until("it runs", lambda: person.phase("orphan") == "Running")
    person.shell.run("job", "suspend", "orphan").ok()
    wait_until("it is suspended", lambda: person.phase("orphan") == "Aborted")
    advice = person.explained("orphan")["advice"]
    assert commands(advice) == ["vcbatch job resume orphan"]
    person.type(commands(advice)[0], {})
    wait_until("it runs again", lambda: person.phase("orphan") == "Running")
    person.shell.run("job", "delete", "orphan").ok()
