"""A whole Kubernetes control plane on this machine: etcd, kube-apiserver, its controllers, a scheduler, fake kubelets.

No containers and no privileges: five programs on free ports of the loopback interface, with certificates of their own.
`ControlPlane` starts them fresh, lets a test break them one by one, and leaves nothing behind.
"""

from __future__ import annotations

import functools
import json
import shutil
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml

from tests.cluster import stages
from tests.cluster.binaries.build import Binaries
from tests.cluster.binaries.programs import KWOK_RESUMING
from tests.cluster.pki import Authority
from tests.cluster.processes import Guard, Program, ProgramEnded, wait_until
from tests.support import kubeconfigs
from tests.support.ports import free_port

Json = dict[str, Any]

ETCD, APISERVER, CONTROLLERS, SCHEDULER, KWOK = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
)
ADMIN = "testbed-admin"
HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent

# Everything that acts on the objects vcbatch uses. Left out: what needs real nodes, a cloud or traffic, and what would
# evict pods of a fake node whose heartbeat stalls on a busy machine.
_CONTROLLERS = (
    "namespace-controller",
    "garbage-collector-controller",
    "pod-garbage-collector-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "root-ca-certificate-publisher-controller",
    "replicaset-controller",
    "deployment-controller",
    "replicationcontroller-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
    "cronjob-controller",
    "ttl-after-finished-controller",
    "disruption-controller",
    "resourcequota-controller",
    "clusterrole-aggregation-controller",
    "persistentvolume-binder-controller",
    "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller",
)


_PORT_ATTEMPTS = 5
_PORT_TAKEN = "address already in use"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a control plane differs from the usual one."""

    kwok: bool = True
    """Whether fake kubelets run the pods of nodes that carry the annotation `kwok.x-k8s.io/node: fake`."""
    scheduler: bool = True
    """Whether pods of `default-scheduler` are placed."""
    unlimited: bool = False
    """No limits on requests in flight: for measurements of clients, not of the server's fairness."""
    controllers: Sequence[str] = _CONTROLLERS
    """Which controllers of kube-controller-manager run, by its own names for them."""
    starts_only: bool = False
    """Fake kubelets that start pods and end none, whatever annotations and commands say: for measurements."""
    resuming: bool = False
    """Fake kubelets that go on with a watch where it ended, unlike those of kwok as it is released."""
    flags: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """More command line flags, by program; of a flag given twice, the last counts."""
    network: Path | None = None
    """The network namespace in which the programs run (`/proc/PID/ns/net`). Whoever makes it carries connections to the
    API server's port of 127.0.0.1 into it."""
    hosts: Sequence[str] = ()
    """Further names and addresses of the API server, for its certificate."""


STARTED: list[ControlPlane] = []
"""The control planes of this process, so that a failed test can show what their programs said."""


class ControlPlane:
    """A control plane with its certificates, its logs and its state, all under one folder that the test gives.

    `programs` holds the running `Program`s by name, to be stopped, killed and started again by tests.
    """

    def __init__(self, folder: Path, binaries: Binaries, options: Options | None = None) -> None:
        self.folder = folder
        self.binaries = binaries
        self.options = options or Options()
        self.logs = folder / "logs"
        self.programs: dict[str, Program] = {}
        self.running = False
        self.keep = False
        """Whether the folder is to stay after a fixture's end, for the logs in it."""
        self._users: dict[str, Path] = {}
        self._choose_ports()

    def _choose_ports(self) -> None:
        names = (ETCD, "etcd-peer", APISERVER, CONTROLLERS, SCHEDULER, KWOK, "kwok-node")
        self._ports: dict[str, int] = dict(zip(names, self._distinct_ports(len(names)), strict=True))
        self.server = f"https://127.0.0.1:{self._ports[APISERVER]}"
        self.etcd = f"http://127.0.0.1:{self._ports[ETCD]}"

    @staticmethod
    def _distinct_ports(count: int) -> list[int]:
        ports: dict[int, None] = {}
        while len(ports) < count:
            ports[free_port()] = None
        return list(ports)

    # Life

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Make the certificates, start every program, and return once the API server and its controllers work.

        Between the choice of a free port and its use another program may take it: then all is started again elsewhere.
        """
        STARTED.append(self)
        self.running = True
        for attempt in range(_PORT_ATTEMPTS):
            try:
                self._start()
                return
            except ProgramEnded:
                taken = any(_PORT_TAKEN in program.said().lower() for program in self.programs.values())
                if not taken or attempt == _PORT_ATTEMPTS - 1:
                    raise
            self._end_programs()
            self._choose_ports()

    def _start(self) -> None:
        self._users.clear()
        shutil.rmtree(self.logs, ignore_errors=True)
        self.logs.mkdir(parents=True)
        self.guard = Guard()
        self.state = Path(tempfile.mkdtemp(prefix="vcbatch-etcd-", dir=_fast_folder()))
        self.guard.remove(self.state)
        self.authority = Authority(self.folder / "pki")
        self._serving = self.authority.serving(
            "serving",
            hosts=("localhost", "127.0.0.1", "kubernetes.default.svc", "10.0.0.1", *self.options.hosts),
        )
        self._tokens = self.authority.signing_key("service-accounts")
        self.kubeconfig = self.user(ADMIN, groups=("system:masters",))
        self.client_context = self.context_of(ADMIN, groups=("system:masters",))
        for name, arguments in self._commands().items():
            file = KWOK_RESUMING if name == KWOK and self.options.resuming else name
            within = ["nsenter", f"--net={self.options.network}"] if self.options.network else []
            command = [*within, str(self.binaries.path(file)), *arguments, *self.options.flags.get(name, ())]
            self.programs[name] = Program(name, command, log=self.logs / f"{name}.log", guard=self.guard)
        self.programs[ETCD].start()
        self.programs[APISERVER].start()
        self.wait_ready()
        others = [name for name in (CONTROLLERS, SCHEDULER, KWOK) if name in self.programs]
        for name in others:
            self.programs[name].start()
        for name in others:
            wait_until(f"{name} listens", functools.partial(self.programs[name].listens, self._ports[name]))
        self.wait_service_accounts("default")

    def stop(self) -> None:
        """End everything at once, and remove the state. The logs stay with the folder."""
        self.running = False
        self._end_programs()

    def _end_programs(self) -> None:
        for program in self.programs.values():
            program.kill()
        if hasattr(self, "guard"):
            self.guard.close()

    def wait_ready(self, timeout: float = 90.0) -> None:
        """Return once the API server says that it is ready; raises where it or etcd ended."""

        def ready() -> bool:
            self.programs[ETCD].check()
            self.programs[APISERVER].check()
            try:
                return self.request("GET", "/readyz")[0] == 200
            except OSError:
                return False

        wait_until("the API server is ready", ready, timeout=timeout)

    def wait_service_accounts(self, namespace: str) -> None:
        """Return once pods may be created in that namespace, which needs its default service account.

        Raises `ProgramEnded` where one of the programs ended: whoever listens on its port may be somebody else.
        """
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"

        def exists() -> bool:
            for program in self.programs.values():
                program.check()
            return self.request("GET", path)[0] == 200

        wait_until(f"{namespace} has a service account", exists)

    # Command lines

    def _commands(self) -> dict[str, list[str]]:
        commands = {ETCD: self._etcd(), APISERVER: self._apiserver(), CONTROLLERS: self._controllers()}
        if self.options.scheduler:
            commands[SCHEDULER] = [
                f"--kubeconfig={self.kubeconfig}", f"--secure-port={self._ports[SCHEDULER]}",
                "--bind-address=127.0.0.1", f"--cert-dir={self.folder / 'pki'}", "--leader-elect=false",
            ]  # fmt: skip
        if self.options.kwok:
            commands[KWOK] = self._kwok()
        return commands

    def _etcd(self) -> list[str]:
        peer = f"http://127.0.0.1:{self._ports['etcd-peer']}"
        return [
            "--name=testbed", f"--data-dir={self.state}", f"--listen-client-urls={self.etcd}",
            f"--advertise-client-urls={self.etcd}", f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=testbed={peer}",
            "--quota-backend-bytes=4294967296", "--unsafe-no-fsync", "--log-level=warn",
        ]  # fmt: skip

    def _apiserver(self) -> list[str]:
        flags = [
            f"--etcd-servers={self.etcd}", "--bind-address=127.0.0.1", f"--secure-port={self._ports[APISERVER]}",
            "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none", "--allow-privileged=true",
            "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/16",
            f"--tls-cert-file={self._serving.certificate}", f"--tls-private-key-file={self._serving.key}",
            f"--client-ca-file={self.authority.certificate}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={self._tokens.certificate}",
            f"--service-account-signing-key-file={self._tokens.key}",
            # Fake nodes are born ready; the plugin would taint them until a controller that doesn't run took it away.
            "--disable-admission-plugins=TaintNodesByCondition", "--event-ttl=2h", f"--cert-dir={self.folder / 'pki'}",
        ]  # fmt: skip
        if self.options.unlimited:
            flags += ["--max-requests-inflight=20000", "--max-mutating-requests-inflight=20000"]
        return flags

    def _controllers(self) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig}", "--bind-address=127.0.0.1", f"--secure-port={self._ports[CONTROLLERS]}",
            f"--cert-dir={self.folder / 'pki'}", "--leader-elect=false", "--use-service-account-credentials=false",
            "--kube-api-qps=5000", "--kube-api-burst=10000", f"--root-ca-file={self.authority.certificate}",
            f"--service-account-private-key-file={self._tokens.key}",
            f"--controllers={','.join(self.options.controllers)}",
        ]  # fmt: skip

    def _kwok(self) -> list[str]:
        node = self.authority.serving("kubelet")
        stages_file = stages.write(self.folder / "stages.yaml", starts_only=self.options.starts_only)
        return [
            f"--kubeconfig={self.kubeconfig}", f"--config={stages_file}",
            "--manage-all-nodes=false",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake", "--node-ip=127.0.0.1",
            f"--node-port={self._ports['kwok-node']}", f"--server-address=127.0.0.1:{self._ports[KWOK]}",
            f"--tls-cert-file={node.certificate}", f"--tls-private-key-file={node.key}",
            "--cidr=10.64.0.0/10", "--node-lease-duration-seconds=0",
        ]  # fmt: skip

    # Identities

    def user(self, name: str, *, groups: Sequence[str] = ()) -> Path:
        """The kubeconfig of a user known by a client certificate."""
        if name not in self._users:
            pair = self.authority.client(name, groups=groups)
            self._users[name] = self._kubeconfig(
                name, {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
            )
        return self._users[name]

    def service_account(self, namespace: str, name: str, *, seconds: int = 3600) -> Path:
        """The kubeconfig of a service account that exists, with a token that it finds in a file beside it.

        The file may be rewritten by `write_token`, as a kubelet does when a token nears its end.
        """
        token = self.folder / f"{namespace}-{name}.token"
        self.write_token(namespace, name, token, seconds=seconds)
        return self._kubeconfig(f"{namespace}-{name}", {"tokenFile": str(token)})

    def write_token(self, namespace: str, name: str, path: Path, *, seconds: int = 3600) -> str:
        """Ask for a token of that service account (at least 600 seconds) and put it in place in one step."""
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        answer = self.call("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", body)
        unfinished = path.with_suffix(".new")
        unfinished.touch(mode=0o600)
        unfinished.write_text(answer["status"]["token"], encoding="utf-8")
        unfinished.rename(path)
        return str(answer["status"]["token"])

    def _kubeconfig(self, name: str, user: Json) -> Path:
        path = self.folder / f"{name.replace(':', '-')}.kubeconfig"
        authority = str(self.authority.certificate)
        config = kubeconfigs.document(
            self.server, name="testbed", user=user, user_name=name, certificate_authority=authority
        )
        return kubeconfigs.write(path, config)

    def through(self, server: str, kubeconfig: Path, *, name: str) -> Path:
        """A copy of a kubeconfig that goes to another address, e.g. a proxy that spoils some of the requests."""
        config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        config["clusters"][0]["cluster"]["server"] = server
        return kubeconfigs.write(self.folder / f"{name}.kubeconfig", config)

    # Requests of the test itself, as the administrator

    def request(
        self, method: str, path: str, body: object = None, *, content_type: str = "application/json",
        context: ssl.SSLContext | None = None,
    ) -> tuple[int, Any]:  # fmt: skip
        """The status code, and the answer: decoded where it is JSON, else text. Raises OSError without an answer.

        `context`: another user than the administrator, by `context_of`."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server + path, data=data, method=method)
        request.add_header("Accept", "application/json")
        if data is not None:
            request.add_header("Content-Type", content_type)
        try:
            with urllib.request.urlopen(request, context=context or self.client_context, timeout=30) as answer:
                return answer.status, _decoded(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _decoded(error.read())

    def call(self, method: str, path: str, body: object = None, *, content_type: str = "application/json") -> Any:
        """The answer to a request that must succeed."""
        code, answer = self.request(method, path, body, content_type=content_type)
        assert code < 300, f"{method} {path} -> {code}: {answer}"
        return answer

    def metrics(self) -> str:
        """What the API server counted, in Prometheus' text format."""
        return str(self.request("GET", "/metrics")[1])

    def kubectl(
        self, *arguments: str, stdin: str | None = None, kubeconfig: Path | None = None, timeout: float = 120.0
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl of the server's version, by default as the administrator."""
        command = [str(self.binaries.path("kubectl")), "--kubeconfig", str(kubeconfig or self.kubeconfig)]
        return subprocess.run(
            [*command, "--cache-dir", str(self.folder / "kubectl-cache"), *arguments],
            input=stdin, capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip

    def must_kubectl(
        self, *arguments: str, stdin: str | None = None, kubeconfig: Path | None = None, timeout: float = 120.0
    ) -> str:
        """What kubectl printed; it must succeed."""
        done = self.kubectl(*arguments, stdin=stdin, kubeconfig=kubeconfig, timeout=timeout)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def apply(self, *files: Path, kubeconfig: Path | None = None) -> None:
        """`kubectl apply -f` these files or folders, server-side so that large CRDs fit."""
        names = [argument for file in files for argument in ("-f", str(file))]
        self.must_kubectl("apply", "--server-side", *names, kubeconfig=kubeconfig)

    def install_crds(self) -> None:
        """Apply the project's CustomResourceDefinitions, and return once all are served."""
        self.apply(REPOSITORY / "crds")
        self.must_kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")

    def delete_crds(self, *names: str, timeout: float = 90.0) -> None:
        """Delete these CustomResourceDefinitions (all, without a name) and their objects, and wait until they are gone.

        kube-apiserver's finalizer of CRDs can stop after a first failure: its second try works on a cached copy that
        is older than the condition it wrote itself, gets a conflict, and waits for a change that does not come before
        the informer's next resync. So whatever remains is changed every few seconds.
        """
        which = names or ("--all",)
        self.must_kubectl("delete", "crd", *which, "--wait=false")
        deadline = time.monotonic() + timeout
        while remaining := self.must_kubectl("get", "crd", *names, "--ignore-not-found", "-o", "name").split():
            assert time.monotonic() < deadline, f"still there after {timeout:.0f} s: {remaining}"
            if self.kubectl("wait", "--for=delete", *remaining, "--timeout=5s").returncode:
                for crd in remaining:  # some may have been deleted meanwhile
                    self.kubectl("annotate", crd, "--overwrite", f"test.vcbatch.dev/deletion={time.monotonic()}")

    def add_nodes(
        self, count: int, *, prefix: str = "node", cpu: str = "32", memory: str = "256Gi", pods: str = "110",
        labels: Mapping[str, str] | None = None, more: Mapping[str, str] | None = None,
    ) -> list[str]:  # fmt: skip
        """Create simulated nodes that are ready at once; `more` are further resources (`nvidia.com/gpu: "8"`)."""
        bodies = [
            fake_node(f"{prefix}-{index}", cpu=cpu, memory=memory, pods=pods, labels=labels or {}, more=more or {})
            for index in range(count)
        ]
        with ThreadPoolExecutor(8) as pool:
            for _ in pool.map(lambda body: self.call("POST", "/api/v1/nodes", body), bodies):
                pass
        return [body["metadata"]["name"] for body in bodies]

    def context_of(self, user: str, *, groups: Sequence[str] = ()) -> ssl.SSLContext:
        """With which that user makes requests, known by a client certificate."""
        pair = self.authority.client(user, groups=groups)
        context = ssl.create_default_context(cafile=str(self.authority.certificate))
        context.load_cert_chain(str(pair.certificate), str(pair.key))
        return context


def fake_node(
    name: str, *, cpu: str, memory: str, pods: str, labels: Mapping[str, str], more: Mapping[str, str]
) -> Json:
    """A Node that kwok runs pods for, Ready from its first moment."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    resources = {"cpu": cpu, "memory": memory, "pods": pods, **more}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", **labels,
            },
        },
        "status": {
            "allocatable": resources,
            "capacity": resources,
            "conditions": [{**ready, "lastHeartbeatTime": now, "lastTransitionTime": now}],
            "phase": "Running",
        },
    }  # fmt: skip


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode(errors="replace")


def _fast_folder() -> str | None:
    """Memory where the machine offers it: etcd writes much, and nothing of a test is to be kept."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > 4 * 2**30 else None
