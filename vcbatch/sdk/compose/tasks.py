"""The tasks of a job by framework: their pods, their commands, and the task whose end completes the job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from vcbatch.api import names
from vcbatch.api.job import Action, Event
from vcbatch.api.model import Json
from vcbatch.api.names import Plugin
from vcbatch.sdk.compose.program import Program, literal, shell
from vcbatch.sdk.compose.request import Array, CannotCompose, Framework, JobRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One task. `container` is the container name that plugins expect; `equipped` pods get the resources of a node."""

    name: str
    replicas: int
    command: list[str]
    container: str = "main"
    equipped: bool = True
    ends_job: bool = False
    """Whether the job is complete when this task is, whatever the state of the others."""
    scratch: str = ""
    """A directory that every container of the task mounts as its own."""

    def policies(self) -> list[Json]:
        return [{"event": Event.TASK_COMPLETED.value, "action": Action.COMPLETE_JOB.value}] if self.ends_job else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """All tasks, with the plugins that they need."""

    roles: list[Role]
    plugins: dict[Plugin, list[str]] = field(default_factory=dict[Plugin, list[str]])


def framework_of(request: JobRequest, program: Program) -> Framework:
    """The requested framework, or the default for the program."""
    if request.framework is not None:
        return request.framework
    several = request.nodes > 1 or (request.processes or request.gpus) > 1
    return Framework.PYTORCH if several and program.python and request.array is None else Framework.NONE


def shape_of(request: JobRequest, program: Program) -> Shape:
    """The tasks of the request. Raises `CannotCompose`."""
    framework = framework_of(request, program)
    if request.array is not None:
        return _array(request, program, request.array, framework)
    processes = request.processes or 1
    if processes > 1 and framework not in (Framework.PYTORCH, Framework.MPI):
        text = f"{processes} processes on a node require framework pytorch or mpi, got {framework}"
        raise CannotCompose("processes", text)
    return _SHAPES[framework](request, program)


def _array(request: JobRequest, program: Program, array: Array, framework: Framework) -> Shape:
    for option, given in (("nodes", request.nodes), ("processes", request.processes or 1)):
        if given != 1:
            raise CannotCompose(option, f"must be 1 for an array, whose members are single processes, got {given}")
    if framework is not Framework.NONE:
        text = f"must be none for an array, whose members are independent, got {framework}"
        raise CannotCompose("framework", text)
    index = f"{names.ENV_TASK_INDEX} * {array.step} + {array.first}"
    run = _tries(1 + request.max_retries) if request.max_retries else 'exec "$@"'
    script = f"export {names.ENV_ARRAY_INDEX}=$(({index})); {run}"
    words = shell(script, _literal(program.words(request.python)))
    return Shape(roles=[Role(name="array", replicas=array.count, command=words)])


def _tries(most: int) -> str:
    """A shell script that runs its arguments until they succeed, at most `most` times; its exit code is that of the
    last run. A signal that ends the shell ends the run, and no other follows.

    The run gets the signal exactly once, whenever it arrives: also before the shell knows the process of the run, and
    not before that process has left the shell's own signal handlers behind, which may take it a moment.
    """
    return (
        "stop=; sent=; pid=; at=0; code=143; try=1; "
        'end() { sent=1; [ "$(($(date +%s) - at))" -gt 1 ] || sleep 1; kill -TERM "$pid"; }; '
        "trap 'stop=1; [ -z \"$pid\" ] || end' TERM; "
        'while [ -z "$stop" ] || exit "$code"; do '
        'at=$(date +%s); "$@" & pid=$!; [ -z "$stop" ] || [ -n "$sent" ] || end; '
        'wait "$pid"; code=$?; while kill -0 "$pid" 2>/dev/null; do wait "$pid"; code=$?; done; pid=; '
        f'[ "$code" -ne 0 ] && [ "$try" -lt {most} ] || exit "$code"; '
        f'[ -n "$stop" ] || echo "try $try of {most} ended with exit code $code" >&2; try=$((try + 1)); done'
    )


def _none(request: JobRequest, program: Program) -> Shape:
    role = Role(name="worker", replicas=request.nodes, command=_literal(program.words(request.python)))
    return Shape(roles=[role], plugins={Plugin.SVC: []} if request.nodes > 1 else {})


def _pytorch(request: JobRequest, program: Program) -> Shape:
    """torchrun on every node; the plugin sets the rendezvous address. A single node needs none."""
    per_node = request.processes or request.gpus or 1
    if request.nodes == 1:
        options = ["--standalone", f"--nproc-per-node={per_node}"]
        return Shape(roles=[Role(name="master", replicas=1, command=_torchrun(request, program, options))])
    options = [
        f"--nnodes={request.nodes}",
        f"--nproc-per-node={per_node}",
        f"--node-rank=$({names.ENV_RANK})",
        f"--master-addr=$({names.ENV_MASTER_ADDR})",
        f"--master-port=$({names.ENV_MASTER_PORT})",
    ]
    command = _torchrun(request, program, options)
    roles = [
        Role(name="master", replicas=1, command=command),
        Role(name="worker", replicas=request.nodes - 1, command=command),
    ]
    return Shape(roles=roles, plugins={Plugin.PYTORCH: ["--master=master", "--worker=worker"], Plugin.SVC: []})


def _torchrun(request: JobRequest, program: Program, options: list[str]) -> list[str]:
    target = Program(
        python=program.python, target=tuple(_literal(program.target)), arguments=tuple(_literal(program.arguments))
    )
    return target.under_torchrun(request.python, options)


def _tensorflow(request: JobRequest, program: Program) -> Shape:
    role = Role(name="worker", replicas=request.nodes, command=_literal(program.words(request.python)))
    return Shape(roles=[role], plugins={Plugin.TENSORFLOW: ["--worker=worker"], Plugin.SVC: []})


def _mpi(request: JobRequest, program: Program) -> Shape:
    """mpirun in a pod of its own, in addition to the nodes; it logs in to them."""
    per_node = request.processes or request.gpus or 1
    hosts = f'"${names.ENV_MPI_HOST}"'
    if per_node > 1:
        hosts = f'"$(echo "${names.ENV_MPI_HOST}" | sed "s/,/:{per_node},/g"):{per_node}"'
    script = f'exec mpirun --allow-run-as-root --host {hosts} -np {request.nodes * per_node} "$@"'
    serve = 'mkdir -p /var/run/sshd; exec "$(command -v sshd || echo /usr/sbin/sshd)" -D'
    launcher = Role(
        name="master",
        replicas=1,
        command=shell(script, _literal(program.words(request.python))),
        equipped=False,
        ends_job=True,
    )
    worker = Role(name="worker", replicas=request.nodes, command=shell(serve, [])[:3])
    plugins: dict[Plugin, list[str]] = {
        Plugin.MPI: ["--master=master", "--worker=worker"],
        Plugin.SSH: [],
        Plugin.SVC: [],
    }
    return Shape(roles=[launcher, worker], plugins=plugins)


_RAY_FOLDER: Final = "/tmp/ray"  # noqa: S108 - Ray's own, fixed


def _ray(request: JobRequest, program: Program) -> Shape:
    """A Ray cluster of the nodes, and a pod for the program, which joins without offering CPUs."""
    head = f"${names.env_task_hosts('head')}:6379"
    script = f'until ray start --address="{head}" --num-cpus=0; do sleep 1; done; export RAY_ADDRESS=auto; exec "$@"'
    roles = [
        Role(name="head", replicas=1, command=[], container="head", scratch=_RAY_FOLDER),
        Role(name="worker", replicas=request.nodes - 1, command=[], container="worker", scratch=_RAY_FOLDER),
        Role(
            name="program",
            replicas=1,
            command=shell(script, _literal(program.words(request.python))),
            equipped=False,
            ends_job=True,
            scratch=_RAY_FOLDER,
        ),
    ]
    return Shape(roles=[role for role in roles if role.replicas], plugins={Plugin.RAY: [], Plugin.SVC: []})


_SHAPES: Final[Mapping[Framework, Callable[[JobRequest, Program], Shape]]] = {
    Framework.PYTORCH: _pytorch,
    Framework.TENSORFLOW: _tensorflow,
    Framework.MPI: _mpi,
    Framework.RAY: _ray,
    Framework.NONE: _none,
}


def _literal(words: list[str] | tuple[str, ...]) -> list[str]:
    return [literal(word) for word in words]
