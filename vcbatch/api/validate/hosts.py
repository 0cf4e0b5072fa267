"""Whether a job's host lists, which plugins write, fit into a variable, a ConfigMap and a Secret."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from vcbatch.api import names
from vcbatch.api.flags import PLUGIN_FLAGS, Flags, parse_flags
from vcbatch.api.host_lists import INJECT_HOSTS, HostList, host_lists, in_environment
from vcbatch.api.job import JobSpec
from vcbatch.api.names import Plugin
from vcbatch.api.validate.errors import Cause, ValidationError

LARGEST_CONFIG_MAP: Final = 1024 * 1024
"""The maximum of bytes of all values, of a Secret's too (k8s.io/kubernetes `pkg/apis/core/validation`,
`MaxSecretSize`)."""
LARGEST_VARIABLE: Final = 128 * 1024 - 1
"""The maximum of bytes of `NAME=value` (Linux `MAX_ARG_STRLEN`, of which the last byte is the terminator)."""
_KEYS_SIZE: Final = 4096  # more than the size of the ssh plugin's key pair
_ROLES: Final = ("ps", "worker", "chief", "evaluator")


def host_list_errors(spec: JobSpec, job: str, path: str) -> Iterator[ValidationError]:
    """Errors of lists that are too large for the objects or variables of the job's plugins, with their sizes."""
    lists = host_lists(spec, job)
    for plugin, check in ((Plugin.SVC, _svc), (Plugin.SSH, _ssh), (Plugin.MPI, _mpi), (Plugin.TENSORFLOW, _tensorflow)):
        arguments = spec.plugins.get(plugin)
        if arguments is None:
            continue
        field = f"{path}.plugins[{plugin}]"
        for text in check(lists, arguments):
            yield ValidationError(field, f"{field}: {text}", Cause.TOO_LONG)


def _svc(lists: Sequence[HostList], arguments: Sequence[str]) -> Iterator[str]:
    total = 2 * sum(each.joined for each in lists)
    if total > LARGEST_CONFIG_MAP:
        text = f"the host lists of the job would have {total} bytes, and a ConfigMap holds {LARGEST_CONFIG_MAP}"
        yield f"{text}; want fewer replicas or shorter names"
    if in_environment(lists, arguments):
        instead = f"fewer replicas, shorter names, or no --{INJECT_HOSTS}, which leaves the files"
        for each in lists:
            yield from _of_variable(names.env_task_hosts(each.task), each.variable, instead)


def _ssh(lists: Sequence[HostList], arguments: Sequence[str]) -> Iterator[str]:
    flags = _flags(Plugin.SSH, arguments)
    rest = len("Host \n  HostName \n  Port \n") + len(str(flags.number("ssh-port")))
    # Each host has its short name and its full name, which ends with a dot and the subdomain.
    config = sum(2 * each.size + each.count * (rest - 1 - len(each.subdomain.encode())) for each in lists)
    total = config + _KEYS_SIZE
    if total > LARGEST_CONFIG_MAP:
        text = f"the keys and the list of hosts would have {total} bytes, and a Secret holds {LARGEST_CONFIG_MAP}"
        yield f"{text}; want fewer replicas or shorter names"


def _mpi(lists: Sequence[HostList], arguments: Sequence[str]) -> Iterator[str]:
    worker = _flags(Plugin.MPI, arguments).text("worker")
    for each in lists:
        if each.task == worker:
            size = len(names.ENV_MPI_HOST) + 1 + each.joined
            yield from _of_variable(names.ENV_MPI_HOST, size, "fewer replicas or shorter names")


def _tensorflow(lists: Sequence[HostList], arguments: Sequence[str]) -> Iterator[str]:
    flags = _flags(Plugin.TENSORFLOW, arguments)
    around = len(f'"":{flags.number("port")}')  # quotes, and a colon with the port
    size = len(f'{names.ENV_TF_CONFIG}={{"cluster":{{}},"task":{{"type":"","index":}}}}')
    longest = max((len(each.task) + len(str(each.count)) for each in lists), default=0)
    for role in _ROLES:
        named = next((each for each in lists if each.task == flags.text(role)), None)
        if named is not None and named.count:
            size += named.joined + named.count * around + len(f'"{role}":[],')
    yield from _of_variable(names.ENV_TF_CONFIG, size + longest, "fewer replicas or shorter names")


def _of_variable(name: str, size: int, instead: str) -> Iterator[str]:
    if size > LARGEST_VARIABLE:
        yield f"the variable {name} would have {size} bytes, and a process takes {LARGEST_VARIABLE}; want {instead}"


def _flags(plugin: Plugin, arguments: Sequence[str]) -> Flags:
    return parse_flags(arguments, PLUGIN_FLAGS[plugin])
