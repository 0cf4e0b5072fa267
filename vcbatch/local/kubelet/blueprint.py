"""Computes the process of a container from its pod's specification: everything that is fixed before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcbatch.api.names import ENVIRONMENT, GROUP_NAME, JOB_NAME, SVC_MOUNT_PATH, svc_config_map
from vcbatch.api.resources import JOBS
from vcbatch.interfaces.processes import BindMount, ProcessSpec
from vcbatch.local.environments import EnvironmentRefusedError, SubmittedEnvironment
from vcbatch.local.kubelet import environment, logins, probes, volumes
from vcbatch.local.kubelet.devices import Allotment, gpu_environment
from vcbatch.local.kubelet.environment import ConfigError, PodFacts
from vcbatch.local.kubelet.names import PodName, peers, pod_name, replace_names
from vcbatch.local.kubelet.node_services import NodeServices
from vcbatch.local.kubelet.ports import Translation
from vcbatch.local.kubelet.records import PodRecord, Run
from vcbatch.local.kubelet.sandbox import Mode

Json = dict[str, Any]

DEFAULT_TERMINATION_PATH = "/dev/termination-log"
_HOSTS_FILE = "/etc/hosts"
_TEMPORARY = ".tmp"  # not a valid volume name


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """The current ConfigMaps and Secrets that a pod reads, and the paths of its claims' volumes."""

    contents: Mapping[tuple[str, str], Mapping[str, bytes]]
    claims: Mapping[str, Path]

    def config_map(self, name: str) -> Mapping[str, bytes] | None:
        return self.contents.get(("configmap", name))

    def secret(self, name: str) -> Mapping[str, bytes] | None:
        return self.contents.get(("secret", name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """One container, ready to be started."""

    argv: list[str]
    env: dict[str, str]
    working_dir: str
    mounts: list[BindMount]
    translations: list[Translation]
    umask: int = 0o022


def group_of(pod: Json) -> str:
    """The gang with which a pod shares its ports and names: its PodGroup, else its controller, else itself."""
    metadata = pod["metadata"]
    group = (metadata.get("annotations") or {}).get(GROUP_NAME)
    if group:
        return f"{metadata['namespace']}/{group}"
    owner = next((o for o in metadata.get("ownerReferences") or () if o.get("controller")), None)
    return owner["uid"] if owner else metadata["uid"]


def draw(
    *,
    pod: Json,
    container: Json,
    address: str,
    allotment: Allotment,
    paths: Mapping[str, Path],
    objects: Objects,
    node: NodeServices,
) -> Blueprint:
    """Compute a container's command, environment and mounts; raises `ConfigError`."""
    probes.check_supported(container)
    facts = PodFacts(
        node_name=node.config.node_name, host_ip=node.host_ip, pod_ip=address, allocatable=node.allocatable
    )
    declared, translations = _variables(pod, container, facts, objects, node)
    own = pod_name(pod)
    gang = {name: _peer(name, own) for name in peers(declared, own)}
    node.hosts.reserve(group_of(pod), {peer.key: peer for peer in gang.values()})
    argv = environment.command_line(container, declared)
    if node.sandbox.mode is Mode.PLAIN:
        addresses = {name: node.hosts.address_of(peer) for name, peer in gang.items()}
        declared = {name: replace_names(value, addresses) for name, value in declared.items()}
        argv = [replace_names(part, addresses) for part in argv]
    submitted = _submitted(pod, node)
    working_dir = container.get("workingDir") or str(node.config.working_dir)
    env = _surroundings(pod, container, allotment, node, _inherited(submitted, working_dir, node)) | declared
    mounts = volumes.bind_mounts(volumes.with_read_only_claims(container, pod["spec"]), paths, declared)
    if logins.logs_in(pod):
        _let_log_in(pod, env, mounts, node)
    return Blueprint(
        argv=argv,
        env=env,
        working_dir=working_dir,
        mounts=mounts,
        translations=translations,
        umask=0o022 if submitted is None else submitted.umask,
    )


def _submitted(pod: Json, node: NodeServices) -> SubmittedEnvironment | None:
    """The environment of the shell that submitted the pod's job; None where the pod names none. Raises
    `ConfigError`."""
    metadata = pod["metadata"]
    number = (metadata.get("annotations") or {}).get(ENVIRONMENT)
    if not number:
        return None
    if node.config.environments is None:
        raise ConfigError("this node has no environments of submitting shells")
    kind = (JOBS.api_version, JOBS.kind)
    owners = (o for o in metadata.get("ownerReferences") or () if (o.get("apiVersion"), o.get("kind")) == kind)
    job = next((owner["uid"] for owner in owners if owner.get("controller")), "")
    try:
        return node.config.environments.read(number, namespace=metadata["namespace"], job=job)
    except EnvironmentRefusedError as error:
        raise ConfigError(str(error)) from error


def _inherited(submitted: SubmittedEnvironment | None, working_dir: str, node: NodeServices) -> dict[str, str]:
    """The variables that a container has if nothing else sets them."""
    if submitted is None:
        return dict(node.config.environment)
    base = {} if submitted.complete else node.config.environment
    return {**base, **submitted.variables, "PWD": working_dir}


def _let_log_in(pod: Json, env: dict[str, str], mounts: list[BindMount], node: NodeServices) -> None:
    """Put `ssh` and `sshd` on the container's PATH, and give the pod its own directory for temporary files: launchers
    name theirs after process ids, which may be equal in two pods."""
    uid = pod["metadata"]["uid"]
    temporary = node.memory_directory / uid / _TEMPORARY
    temporary.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = logins.write_programs(node.config.root / "pods" / uid / "bin", root=node.config.root, uid=uid)
    env |= {"PATH": f"{folder}:{env['PATH']}", "TMPDIR": str(temporary)}
    if node.sandbox.mode is Mode.USERNS:
        mounts.append(BindMount(source=folder / "sshd", target=logins.SSHD_PATH))


def _variables(
    pod: Json, container: Json, facts: PodFacts, objects: Objects, node: NodeServices
) -> tuple[dict[str, str], list[Translation]]:
    def build(instead: Mapping[str, str]) -> dict[str, str]:
        return environment.build(
            pod=pod,
            container=container,
            facts=facts,
            config_map=volumes.as_text(objects.config_map),
            secret=volumes.as_text(objects.secret),
            instead=instead,
        )

    asked = build({})
    given, translations = node.ports.rewrite(group_of(pod), asked)
    instead = {name: value for name, value in given.items() if asked[name] != value}
    return (build(instead) if instead else asked), translations


def _peer(name: str, own: PodName) -> PodName:
    return PodName(namespace=own.namespace, hostname=name.split(".", 1)[0], subdomain=own.subdomain)


def _surroundings(
    pod: Json, container: Json, allotment: Allotment, node: NodeServices, inherited: Mapping[str, str]
) -> dict[str, str]:
    """The container's default environment; its own variables override it."""
    env = dict(inherited)
    env.setdefault("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    own = pod_name(pod)
    env["HOSTNAME"] = own.hostname
    threads = environment.thread_count(container)
    if threads is not None:
        env["OMP_NUM_THREADS"] = str(threads)
    env |= gpu_environment(node.devices, allotment.gpus.get(container["name"], ()))
    if node.sandbox.mode is Mode.NSS:
        preload = [str(node.sandbox.nss_wrapper), *filter(None, [env.get("LD_PRELOAD", "")])]
        env |= {
            "LD_PRELOAD": ":".join(preload),
            "NSS_WRAPPER_HOSTS": str(node.config.root / "pods" / pod["metadata"]["uid"] / "hosts"),
            "NSS_WRAPPER_HOSTNAME": own.hostname,
            "GRPC_DNS_RESOLVER": "native",
        }
    return env


def process_spec(
    *,
    pod: Json,
    container: Json,
    blueprint: Blueprint,
    record: PodRecord,
    run: Run,
    allotment: Allotment,
    node: NodeServices,
) -> ProcessSpec:
    """The specification for the `Processes` interface. Mounts require namespaces; in other modes links replace them."""
    mounts: list[BindMount] = []
    if node.sandbox.mode is Mode.USERNS:
        path = container.get("terminationMessagePath") or DEFAULT_TERMINATION_PATH
        mounts = [*blueprint.mounts, BindMount(source=run.path / "termination-log", target=path)]
        if not any(mount.target == _HOSTS_FILE for mount in mounts):
            # Last, since a mount point created in /etc covers earlier mounts there.
            mounts.append(BindMount(source=record.hosts_file, target=_HOSTS_FILE))
    cpus = allotment.cpus.get(container["name"], ()) if node.config.pin_cpus else ()
    return ProcessSpec(
        record=run.path,
        argv=blueprint.argv,
        env=blueprint.env,
        working_dir=blueprint.working_dir,
        hostname=pod_name(pod).hostname,
        mounts=mounts,
        cpus=cpus,
        log_max_bytes=node.config.log_max_bytes,
        log_max_files=node.config.log_max_files,
        umask=blueprint.umask,
        stdin=bool(container.get("stdin")),
    )


def linkable_mounts(pod: Json, mounts: list[BindMount]) -> tuple[list[BindMount], list[str]]:
    """Without namespaces: the mounts that need a link, and descriptions of those that are left out of the pod.

    The host lists of the svc plugin are left out, since every gang mounts its own at one fixed path; the environment
    has the same lists."""
    job = (pod["metadata"].get("labels") or {}).get(JOB_NAME, "")
    maps = {v.get("configMap", {}).get("name") for v in pod["spec"].get("volumes") or () if v.get("configMap")}
    needed = [m for m in mounts if not (m.target == SVC_MOUNT_PATH and svc_config_map(job) in maps)]
    words: list[str] = []
    if len(needed) < len(mounts):
        words.append(f"{SVC_MOUNT_PATH} is not mounted (the host lists are in VC_<TASK>_HOSTS)")
    words += [f"{m.target} is not read-only" for m in needed if m.read_only]
    return needed, words


def without_effect(pod: Json, sandbox_mode: Mode, *, uid: int, gid: int) -> list[str]:
    """Descriptions of the parts of a pod's specification that have no effect on a process of this machine; for an
    event."""
    spec = pod["spec"]
    words: list[str] = []
    contexts = [spec.get("securityContext") or {}]
    contexts += [c.get("securityContext") or {} for c in spec.get("containers") or ()]
    if any(c.get("runAsUser") not in (None, uid) or c.get("runAsGroup") not in (None, gid) for c in contexts):
        words.append(f"containers run as user {uid}, group {gid}, whatever securityContext says")
    if any(c.get("readOnlyRootFilesystem") or c.get("capabilities") or c.get("seccompProfile") for c in contexts):
        words.append("securityContext restricts nothing here")
    if any(c.get("tty") for c in spec.get("containers") or ()):
        words.append("containers have no terminal: tty is without effect")
    if sandbox_mode is Mode.PLAIN and spec.get("hostAliases"):
        words.append("hostAliases need mode userns or nss")
    if any((v.get("emptyDir") or {}).get("sizeLimit") for v in spec.get("volumes") or ()):
        words.append("emptyDir.sizeLimit is not enforced")
    return words
