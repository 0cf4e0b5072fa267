"""All commands with their flags. As in Volcano, short flags differ between programs: `-n` is the namespace in `vcctl
job` and the name in `vjobs`, `vsub` and the like, and in `vcctl queue`."""

from __future__ import annotations

from typing import Final

from vcbatch.api import names
from vcbatch.cli.vcctl.flags import Flag, Kind
from vcbatch.cli.vcctl.tree import Command

_HERE = "vcbatch.cli.vcctl"
NAMESPACE: Final = "default"
"""The default namespace of jobs, whatever the kubeconfig's context is, as in Volcano's commands."""
IMAGE: Final = "busybox"
_RESOURCES = "cpu=1000m,memory=100Mi"

_ACCESS = (
    Flag(name="master", short="s", help="address of the API server, in place of the kubeconfig's"),
    Flag(name="kubeconfig", short="k", help="path of the kubeconfig"),
    Flag(name="context", help="context of the kubeconfig"),
)


def _text(name: str, short: str, help_: str, default: str = "") -> Flag:
    return Flag(name=name, short=short, default=default, help=help_)


def _number(name: str, short: str, help_: str, default: int, kind: Kind = Kind.INT) -> Flag:
    return Flag(name=name, short=short, kind=kind, default=default, help=help_)


def _switch(name: str, help_: str) -> Flag:
    return Flag(name=name, kind=Kind.BOOL, default=False, help=help_)


def _command(name: str, run: str, short: str, *flags: Flag, long: str = "") -> Command:
    return Command(name=name, short=short, long=long, run=f"{_HERE}.{run}", flags=(*_ACCESS, *flags))


def _namespace(of: str, short: str = "n", default: str = NAMESPACE) -> Flag:
    return _text("namespace", short, f"namespace of the {of}", default)


def _name(of: str, short: str = "N", default: str = "") -> Flag:
    return _text("name", short, f"name of the {of}", default)


def _everywhere(what: str) -> Flag:
    return _switch("all-namespaces", f"{what} of all namespaces")


def _of_environment(name: str, short: str, what: str, variable: str, otherwise: str) -> Flag:
    return _text(name, short, f"{what}; otherwise ${variable}, or {otherwise}")


_SIZE = (
    _number("min", "m", "how many tasks have to run for the job to run", 1),
    _number("replicas", "r", "how many tasks the job has", 1),
    _text("requests", "R", "resources that a task asks for", _RESOURCES),
    _text("limits", "L", "resources that a task may use at most", _RESOURCES),
)
_FILTERS = (
    _text("scheduler", "S", "only jobs of this scheduler"),
    _switch("all-namespaces", "jobs of all namespaces"),
    _text("selector", "", "only jobs whose name contains this text"),
)
_WEIGHT = "share of the cluster that the queue has against other queues"


def _jobs() -> Command:
    one = (_namespace("job"), _name("job"))
    return Command(
        name="job",
        short="Run, show, suspend, resume and delete jobs",
        below=(
            _command(
                "run",
                "job:run",
                "Submit a job made from flags, or from a file",
                _text("image", "i", "image of the container", IMAGE),
                *one,
                *_SIZE,
                _text("scheduler", "S", "scheduler of the job", names.DEFAULT_SCHEDULER),
                _text("filename", "f", "YAML or JSON file with one job; - is standard input"),
            ),
            _command(
                "list", "job:list_jobs", "List jobs", _text("queue", "q", "only jobs of this queue"), one[0], *_FILTERS
            ),
            _command("view", "job:view", "Show a job and its events", *one),
            _command("suspend", "job:suspend", "Abort a job; it can be resumed", *one),
            _command("resume", "job:resume", "Resume an aborted job", *one),
            _command("delete", "job:delete", "Delete a job", *one),
        ),
    )


def _queues() -> Command:
    name = _name("queue", "n")
    return Command(
        name="queue",
        short="Create, show, change and delete queues",
        below=(
            _command(
                "create",
                "queue:create",
                "Create a queue",
                _name("queue", "n", "test"),
                _number("weight", "w", _WEIGHT, 1, Kind.INT32),
                _text("state", "S", "Open, or Closed to take no jobs yet", "Open"),
            ),
            _command("delete", "queue:delete", "Delete a queue", name),
            _command(
                "operate",
                "queue:operate",
                "Open or close a queue, or change its weight",
                name,
                _number("weight", "w", _WEIGHT, 0, Kind.INT32),
                _text("action", "a", "open, close, or update (with --weight)"),
            ),
            _command("list", "queue:list_queues", "List queues with their PodGroups"),
            _command("get", "queue:get", "Show one queue with its PodGroups", name),
        ),
    )


def _flows() -> tuple[Command, Command]:
    def group(kind: str, words: str, *listing: Flag) -> Command:
        one = (_name(words), _namespace(words))
        file = _text("file", "f", f"YAML file with one or more {words}s; - is standard input")
        return Command(
            name=kind,
            short=f"Create, show and delete {words}s",
            below=(
                _command("create", f"flow:{kind.upper()}.create", f"Create the {words}s of a file", file),
                _command("list", f"flow:{kind.upper()}.list_all", f"List {words}s", one[1], *listing),
                _command("get", f"flow:{kind.upper()}.get", f"Show one {words}", *one),
                _command("delete", f"flow:{kind.upper()}.delete", f"Delete a {words}, or those of a file", *one, file),
                _command(
                    "describe",
                    f"flow:{kind.upper()}.describe",
                    f"Print a {words}, or all, as it is stored",
                    *one,
                    _text("format", "o", "yaml or json", "yaml"),
                ),
            ),
        )

    return group("jobflow", "job flow", _everywhere("job flows")), group("jobtemplate", "job template")


def _pods() -> Command:
    return Command(
        name="pod",
        short="List the pods of jobs",
        below=(
            _command(
                "list",
                "pod:list_pods",
                "List the pods of jobs",
                _text("queue", "q", "only pods of this queue, those of other workloads too"),
                _text("job", "j", "only pods of this job"),
                _namespace("pods"),
                _everywhere("pods"),
            ),
        ),
    )


def _alone(program: str, run: str, short: str, long: str, *flags: Flag) -> Command:
    return _command(program, run, short, *flags, long=long)


def _programs() -> dict[str, Command]:
    one = (_namespace("job", "N"), _name("job", "n"))
    programs = (
        Command(
            name="vcctl",
            below=(
                _jobs(),
                _queues(),
                *_flows(),
                _pods(),
                Command(name="version", short="Print the version", run=f"{_HERE}.version:version"),
            ),
        ),
        _alone(
            "vsub",
            "job:submit",
            "Submit a job",
            "Submit a job made from flags. For a job in a file there is `vcctl job run -f FILE`.",
            _of_environment("image", "i", "image of the container", names.ENV_DEFAULT_IMAGE, IMAGE),
            _of_environment("namespace", "N", "namespace of the job", names.ENV_DEFAULT_JOB_NAMESPACE, NAMESPACE),
            one[1],
            *_SIZE,
            _of_environment("scheduler", "S", "scheduler of the job", names.ENV_SCHEDULER, names.DEFAULT_SCHEDULER),
            _text("command", "c", "command of the container, split into words as a shell does"),
        ),
        _alone(
            "vjobs", "job:show", "Show jobs", "List the jobs of a namespace, or show one by its name.", *one, *_FILTERS
        ),
        _alone("vcancel", "job:cancel", "Cancel a job", "Delete a job, whatever its phase.", *one),
        _alone("vsuspend", "job:suspend", "Suspend a job", "Abort a job; vresume lets it run again.", *one),
        _alone("vresume", "job:resume", "Resume a job", "Let an aborted job run again.", *one),
        _alone(
            "vqueues", "queue:show", "Show queues", "List all queues, or show one by its name.", _name("queue", "n")
        ),
    )
    return {program.name: program for program in programs}


PROGRAMS = _programs()
"""The programs by name."""
