"""Jobs of vcbatch in real containers: the plugins' names and environments, and what people ask running pods."""

from __future__ import annotations

import textwrap
from pathlib import Path

from tests.cluster.controlplane import REPOSITORY
from tests.cluster.processes import wait_until
from tests.nodes.installed import Installed
from tests.nodes.namespace import Namespace, apart, container, job, node_of, task

MPI = "mpioperator/openmpi:latest"


def test_the_first_example_completes(installed: Installed, namespace: Namespace) -> None:
    """As it is in the repository, with each member's index and the names of all."""
    namespace.apply((REPOSITORY / "examples/anything.yaml").read_text(encoding="utf-8"))
    namespace.wait_phase("anything", "Completed")
    hosts = ",".join(f"anything-member-{index}.anything" for index in range(3))
    for index in range(3):
        pod = f"anything-member-{index}"
        assert namespace.logs(pod) == f"I am {index} on {pod}, one of 3: {hosts}\n"


def test_a_gang_on_two_nodes_reaches_its_members_by_name(installed: Installed, namespace: Namespace) -> None:
    asks = """\
        found=
        for host in $(echo $VC_MEMBER_HOSTS | tr , ' '); do
          until ping -c 1 -W 2 $host >/dev/null 2>&1; do sleep 0.2; done
          found="$found $host"
        done
        echo reached$found
        """
    runs = task("member", 2, container(textwrap.dedent(asks)), spec=apart("gang"))
    namespace.submit(job("gang", runs, plugins={"env": [], "svc": []}))
    namespace.wait_phase("gang", "Completed")
    pods = namespace.pods("gang")
    assert {node_of(pod) for pod in pods} == {"node1", "node2"}
    for pod in pods:
        said = namespace.logs(pod["metadata"]["name"])
        assert said == "reached gang-member-0.gang gang-member-1.gang\n"


_ALL_REDUCE = '''\
"""Sum the ranks' numbers: everyone sends to rank 0, which answers with the sum. The same environment as torchrun's."""
import os, socket, time

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    total, peers = 1, []
    with socket.create_server(("", address[1])) as server:
        while len(peers) < world - 1:
            peer, _ = server.accept()
            line = peer.makefile().readline()
            if not line:
                continue  # somebody who only looked whether this port answers
            total += int(line)
            peers.append(peer)
    for peer in peers:
        peer.sendall(f"{total}\\n".encode())
else:
    with socket.create_connection(address, timeout=60) as peer:
        peer.sendall(f"{rank + 1}\\n".encode())
        total = int(peer.makefile().readline())
print(f"rank {rank} of {world}: {total}")
'''


def test_ranks_meet_by_the_environment_of_the_pytorch_plugin(installed: Installed, namespace: Namespace) -> None:
    """A rendezvous and an all-reduce over TCP; workers wait for the master in their init container."""
    namespace.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "code"},
                     "data": {"sum.py": _ALL_REDUCE}})  # fmt: skip
    runs = container("exec python3 /code/sum.py", image=MPI, volumeMounts=[{"name": "code", "mountPath": "/code"}])
    spec = {"volumes": [{"name": "code", "configMap": {"name": "code"}}]}
    namespace.submit(
        job(
            "ddp",
            task("master", 1, runs, spec=spec),
            task("worker", 2, runs, spec=spec),
            plugins={"pytorch": ["--master=master", "--worker=worker", "--wait-master-enabled=true"], "svc": []},
        )
    )
    namespace.wait_phase("ddp", "Completed")
    said = {pod["metadata"]["name"]: namespace.logs(pod["metadata"]["name"]) for pod in namespace.pods("ddp")}
    assert said == {
        "ddp-master-0": "rank 0 of 3: 6\n",
        "ddp-worker-0": "rank 1 of 3: 6\n",
        "ddp-worker-1": "rank 2 of 3: 6\n",
    }


def test_mpirun_starts_ranks_over_ssh(installed: Installed, namespace: Namespace) -> None:
    """examples/mpi.yaml, with Debian's Open MPI, sshd and mpi4py under the name of its image, which isn't pulled."""
    installed.allow_ssh(namespace.name)
    example = (REPOSITORY / "examples/mpi.yaml").read_text(encoding="utf-8")
    image = f"              image: {MPI}\n"
    assert example.count(image) == 2
    namespace.apply(example.replace(image, f"{image}              imagePullPolicy: Never\n"))
    namespace.wait_phase("sum", "Completed", timeout=180)
    said = namespace.logs("sum-master-0")
    for rank in range(3):
        assert f"rank {rank} of 3 on sum-worker-{rank}: " in said
    total = sum(range(3000))
    assert said.count(f" of {total}\n") == 3


def test_logs_commands_and_files_of_a_running_gang(installed: Installed, namespace: Namespace, tmp_path: Path) -> None:
    """Through the real kubelets: `vcbatch job logs` and `exec` as well as kubectl's."""
    says = 'echo "from $VC_TASK_INDEX"; echo data > /tmp/file; sleep 600'
    namespace.submit(job("gang", task("member", 2, container(says), spec=apart("gang")), plugins={"env": []}))
    namespace.wait_running("gang", 2)

    def both() -> bool:
        return set(namespace.vcbatch("job", "logs", "gang", "--no-prefix").stdout.split("\n")) >= {"from 0", "from 1"}

    wait_until("both members' lines", both, pause=0.5)
    ran = namespace.vcbatch("job", "exec", "gang", "--index", "1", "--", "sh", "-c", "hostname; exit 7")
    assert (ran.returncode, ran.stdout) == (7, "gang-member-1\n"), ran.stderr
    namespace.kubectl("cp", "gang-member-0:/tmp/file", str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_text(encoding="utf-8") == "data\n"
