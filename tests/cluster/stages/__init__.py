"""What kwok's fake kubelets do with a pod: stages, written anew for every control plane.

A pod takes its next step whenever something of it is due; what the step is, one template computes from the pod as it is
stored (`pod-status.gotpl`). Wishes are annotations of the pod, or read off simple commands, by the same rules as the
virtual nodes of the embedded server (`vcbatch.local.virtual`).

For measurements there are kubelets that know of no wishes: a pod runs until it is deleted (`pod-start.gotpl`). They
take half the CPU, and what they take is measured as time of whoever is waited for.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]
HERE = Path(__file__).parent

# From its binding until a pod begins to start.
_START_MILLISECONDS = 100

# The earliest moment at which anything of the pod changes by itself.
_NEXT_CHANGE = r"""
[ (.status.initContainerStatuses[]?, .status.containerStatuses[]?)
  | select(.state.terminated | not)
  | (.containerID // "") | select(startswith("fake://2")) | split("/")[2] ]
+ [ (.metadata.annotations["test.vcbatch.io/evict-seconds"] // empty) as $after
    | .status.startTime | fromdateiso8601 + ($after | tonumber) | todateiso8601 ]
| min // empty
"""

# How long a deleted pod takes to end: until its grace period is over where it ignores SIGTERM, else `stop-seconds`.
_STOPPING = r"""
(.metadata.annotations["test.vcbatch.io/stop-seconds"] // "0") as $stop
| (.metadata.deletionGracePeriodSeconds // 30) as $grace
| ([.spec.containers[] | [.command[]?, .args[]?] | join(" ") | test("\\btrap\\s+(''|\"\")\\s+(SIG)?TERM\\b")]
   | any) as $deaf
| if $deaf or $stop == "inf" or ($stop | tonumber) >= $grace then .metadata.deletionTimestamp else $stop + "s" end
"""


def _stage(name: str, kind: str, matching: list[Json], *, then: Json, delay: Json | None = None) -> Json:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": matching},
            "delay": delay or {"durationMilliseconds": 0},
            "next": then,
        },
    }


def _holds(expression: str) -> Json:
    """A condition in CEL, for which kwok needn't turn the pod into JSON as it does for the others, which are jq."""
    return {"cel": {"expression": expression}}


def _is(key: str, *values: str) -> Json:
    return {"key": key, "operator": "In", "values": list(values)}


def _has(key: str) -> Json:
    return {"key": key, "operator": "Exists"}


def _lacks(key: str) -> Json:
    return {"key": key, "operator": "DoesNotExist"}


def stages(*, starts_only: bool = False) -> list[Json]:
    """The stages of pods and nodes. A pod that `starts_only` never ends by itself."""
    of_pods = _of_pods_that_start() if starts_only else _of_pods()
    return [
        *of_pods,
        _stage(
            "node-initialize", "Node", [_lacks('.status.conditions[]? | select(.type == "Ready") | .status')],
            then={"statusTemplate": "conditions:\n{{ range NodeConditions }}\n"
                  "- {type: {{ .type }}, status: {{ .status | Quote }}, reason: {{ .reason }},"
                  " message: {{ .message | Quote }}}\n{{ end }}\nphase: Running\n"},
        ),
    ]  # fmt: skip


def _of_pods() -> list[Json]:
    alive = _lacks(".metadata.deletionTimestamp")
    deleted = _has(".metadata.deletionTimestamp")
    step = {"statusTemplate": (HERE / "pod-status.gotpl").read_text(encoding="utf-8")}
    return [
        _stage(
            "pod-begin", "Pod", [alive, _is(".status.phase", "Pending"), _lacks(".status.startTime")],
            delay={"durationMilliseconds": _START_MILLISECONDS}, then=step,
        ),
        _stage(
            "pod-step", "Pod",
            [alive, _is(".status.phase", "Pending", "Running"), _has(".status.startTime"), _has(_NEXT_CHANGE)],
            delay={"durationMilliseconds": 1000, "durationFrom": {"expressionFrom": _NEXT_CHANGE}}, then=step,
        ),
        _stage(
            "pod-stop", "Pod", [deleted, _is(".status.phase", "Pending", "Running")],
            delay={"durationMilliseconds": 0, "durationFrom": {"expressionFrom": _STOPPING}}, then=step,
        ),
        _stage("pod-remove", "Pod", [deleted, _is(".status.phase", "Succeeded", "Failed")], then={"delete": True}),
    ]  # fmt: skip


def _of_pods_that_start() -> list[Json]:
    start = {"statusTemplate": (HERE / "pod-start.gotpl").read_text(encoding="utf-8")}
    alive, deleted = _holds("!has(self.metadata.deletionTimestamp)"), _holds("has(self.metadata.deletionTimestamp)")
    return [
        _stage(
            "pod-start", "Pod", [alive, _holds("self.status.phase == 'Pending'")],
            delay={"durationMilliseconds": _START_MILLISECONDS}, then=start,
        ),
        _stage("pod-remove", "Pod", [deleted], then={"delete": True}),
    ]  # fmt: skip


def write(path: Path, *, starts_only: bool = False) -> Path:
    """Write the stages where kwok's `--config` finds them."""
    # Kubelets of many nodes write each for itself; kwok's own four at a time would be what a measurement of many pods
    # measures, and so would sixteen: beside a scheduler that binds 200 a second, pods wait 20 s for them.
    configuration = {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokConfiguration",
        "options": {
            "podPlayStageParallelism": 128,
            # The defaults, which a file of configuration switches off.
            "nodePlayStageParallelism": 4,
            "nodeLeaseParallelism": 4,
            "podsOnNodeSyncParallelism": 1,
            "enablePodsOnNodeSyncListPager": True,
            "enablePodsOnNodeSyncStreamWatch": False,
        },
    }
    documents = map(json.dumps, [configuration, *stages(starts_only=starts_only)])
    path.write_text("\n---\n".join(documents) + "\n", encoding="utf-8")
    return path
