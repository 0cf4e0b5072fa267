"""Pods, what becomes of each on a simulated node, and what is left of it after its deletion.

One list for both kinds of simulated nodes: kwok's in the cluster tests, and the virtual nodes of the embedded server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

SETTLED_SECONDS = 8
"""By when each has settled: nothing in the list takes longer, but a first back-off of 10 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """`settled` is an `outcome`; `deleted` is the outcome as it was last seen after a deletion with 2 s of grace."""

    name: str
    settled: str
    deleted: str = ""
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    policy: str = "Never"
    image: str = "any"
    requests: Mapping[str, str] = field(default_factory=dict[str, str])
    init: Sequence[Json] = ()
    more: Sequence[Json] = ()

    def pod(self, node: str) -> Json:
        """The pod, bound to that node."""
        main: Json = {"name": "main", "image": self.image, "command": list(self.command), "args": list(self.args)}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self.name,
                "annotations": {f"test.vcbatch.io/{key}": value for key, value in self.requests.items()},
            },
            "spec": {
                "nodeName": node,
                "restartPolicy": self.policy,
                "initContainers": [{"image": "any", **container} for container in self.init],
                "containers": [main, *({"image": "any", **container} for container in self.more)],
            },
        }


def outcome(pod: Json) -> str:
    """A pod's status in a line: phase and reason, then each container's state with its exit code or reason, and how it
    ended before where it has been restarted."""
    status = pod.get("status") or {}
    words = [status.get("phase", "")]
    if status.get("reason"):
        words.append(status["reason"])
        if status["reason"] == "UnexpectedAdmissionError":
            return " ".join(words)  # nothing was run, so nothing is said of containers
    for entry in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        words.append(f"{entry['name']}={_state(entry['state'])}")
        if entry["restartCount"] and entry.get("lastState"):
            words.append(f"after={_state(entry['lastState'])}")
    return " ".join(words)


def _state(state: Json) -> str:
    if ended := state.get("terminated"):
        return f"{ended['exitCode']}:{ended['reason']}"
    if waiting := state.get("waiting"):
        return str(waiting["reason"])
    return "running"


def _sh(script: str) -> list[str]:
    return ["sh", "-c", script]


SAMPLES: Sequence[Sample] = (
    # Commands
    Sample(name="sleeps", command=["sleep", "1"], settled="Succeeded main=0:Completed"),
    Sample(name="sleeps-a-fraction", command=["/bin/sleep", "0.5s"], settled="Succeeded main=0:Completed"),
    Sample(name="true", command=["true"], settled="Succeeded main=0:Completed"),
    Sample(name="false", command=["false"], settled="Failed main=1:Error"),
    Sample(name="echoes", command=["echo"], args=["a; b"], settled="Succeeded main=0:Completed"),
    Sample(name="exits", command=_sh("exit 77"), settled="Failed main=77:Error"),
    Sample(name="exits-255", command=_sh("exit 255"), settled="Failed main=255:Error"),
    Sample(name="exit-wraps", command=_sh("exit 300"), settled="Failed main=44:Error"),
    Sample(name="exit-octal", command=_sh("exit 010"), settled="Failed main=10:Error"),
    Sample(name="exit-as-before", command=_sh("false; exit"), settled="Failed main=1:Error"),
    Sample(name="script", command=_sh("echo a && sleep 1 && exit 3"), settled="Failed main=3:Error"),
    Sample(name="or", command=_sh("false || exit 4"), settled="Failed main=4:Error"),
    Sample(name="not-and", command=_sh("false && sleep 1000"), settled="Failed main=1:Error"),
    Sample(name="lines", command=_sh("sleep 0.2\nsleep 0.2\nexit 5\n"), settled="Failed main=5:Error"),
    Sample(name="in-args", command=["bash"], args=["-c", "exit 6"], settled="Failed main=6:Error"),
    Sample(
        name="endless", command=["sleep", "infinity"],
        settled="Running main=running", deleted="Failed main=143:Error",
    ),
    Sample(name="inf", command=_sh("sleep 0.1; sleep inf"), settled="Running main=running"),
    Sample(name="unknown", command=["python", "train.py"], settled="Running main=running"),
    Sample(name="image-only", settled="Running main=running"),
    Sample(
        name="ignores-sigterm", command=_sh("trap '' TERM; sleep 1000"),
        settled="Running main=running", deleted="Failed main=137:Error",
    ),
    # Wishes
    Sample(name="runs", requests={"run-seconds": "1"}, settled="Succeeded main=0:Completed"),
    Sample(name="runs-and-exits", requests={"run-seconds": "1", "exit-code": "9"}, settled="Failed main=9:Error"),
    Sample(name="exit-only", command=["python"], requests={"exit-code": "8"}, settled="Failed main=8:Error"),
    Sample(
        name="longer-than-said", command=["sleep", "1"], requests={"run-seconds": "inf"}, settled="Running main=running"
    ),
    Sample(
        name="out-of-memory", requests={"run-seconds": "1", "end-reason": "OOMKilled"},
        settled="Failed main=137:OOMKilled",
    ),
    Sample(name="evicted", requests={"evict-seconds": "1"}, settled="Failed Evicted main=137:Error"),
    Sample(
        name="starts-late", requests={"start-seconds": "1", "run-seconds": "1"}, settled="Succeeded main=0:Completed"
    ),
    Sample(
        name="being-created", requests={"start-seconds": "1000"},
        settled="Pending main=ContainerCreating", deleted="Failed main=ContainerCreating",
    ),
    Sample(
        name="no-image", image="registry.invalid/train:1",
        settled="Pending main=ImagePullBackOff", deleted="Failed main=ImagePullBackOff",
    ),
    Sample(
        name="ends-well", requests={"stop-exit-code": "0"},
        settled="Running main=running", deleted="Succeeded main=0:Completed",
    ),
    Sample(
        name="stops-slowly", requests={"stop-seconds": "1", "stop-exit-code": "3"},
        settled="Running main=running", deleted="Failed main=3:Error",
    ),
    Sample(
        name="stops-too-slowly", requests={"stop-seconds": "60"},
        settled="Running main=running", deleted="Failed main=137:Error",
    ),
    Sample(name="misspelt", requests={"exitcode": "1"}, settled="Failed UnexpectedAdmissionError"),
    Sample(name="no-such-code", requests={"exit-code": "256"}, settled="Failed UnexpectedAdmissionError"),
    # Restarts
    Sample(
        name="restarted-once", policy="OnFailure", requests={"run-seconds": "0.5", "exit-code": "1,0"},
        settled="Succeeded main=0:Completed after=1:Error",
    ),
    Sample(
        name="crash-loop", policy="OnFailure", command=["false"],
        settled="Running main=CrashLoopBackOff after=1:Error", deleted="Failed main=1:Error",
    ),
    Sample(
        name="always", policy="Always", command=["true"],
        settled="Running main=CrashLoopBackOff after=0:Completed",
    ),
    Sample(
        name="always-again", policy="Always", requests={"exit-code": "2,0", "run-seconds": "0.2"},
        settled="Running main=CrashLoopBackOff after=0:Completed",
    ),
    # Several containers
    Sample(
        name="both-end", command=["sleep", "1"], more=[{"name": "side", "command": ["true"]}],
        settled="Succeeded main=0:Completed side=0:Completed",
    ),
    Sample(
        name="one-fails", command=["sleep", "1"], more=[{"name": "side", "command": ["false"]}],
        settled="Failed main=0:Completed side=1:Error",
    ),
    Sample(
        name="one-goes-on", command=_sh("exit 3"), more=[{"name": "side"}],
        settled="Running main=3:Error side=running", deleted="Failed main=3:Error side=143:Error",
    ),
    Sample(
        name="by-name", requests={"exit-code": "1", "exit-code.side": "2"}, more=[{"name": "side"}],
        settled="Failed main=1:Error side=2:Error",
    ),
    # Init containers
    Sample(
        name="init", init=[{"name": "first", "command": ["sleep", "0.5"]}, {"name": "second"}], command=["true"],
        settled="Succeeded first=0:Completed second=0:Completed main=0:Completed",
    ),
    Sample(
        name="init-fails", init=[{"name": "first", "command": ["false"]}], command=["true"],
        settled="Failed first=1:Error main=PodInitializing",
    ),
    Sample(
        name="init-takes-long", init=[{"name": "first", "command": ["sleep", "1000"]}], command=["true"],
        settled="Pending first=running main=PodInitializing", deleted="Failed first=143:Error main=PodInitializing",
    ),
    Sample(
        name="sidecar", init=[{"name": "logs", "restartPolicy": "Always"}], command=["sleep", "1"],
        settled="Succeeded logs=0:Completed main=0:Completed",
    ),
)  # fmt: skip
