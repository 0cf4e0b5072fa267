"""Files brought to a server: what the plan says, and what comes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.cli.conftest import Shell
from vcbatch.api.resources import JOBS, QUEUES
from vcbatch.cli.base.reach import Access

pytestmark = pytest.mark.xdist_group("cli")

TREE = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: below-job}
spec:
  queue: below
  minAvailable: 1
  tasks:
    - name: w
      replicas: 1
      template: {spec: {restartPolicy: Never, containers: [{name: main, image: x, command: [sleep, "600"]}]}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: below}
spec: {parent: above, weight: 2}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: above}
spec: {weight: 2}
"""
QUEUE = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: NAME}
spec: {weight: 2}
"""


def stored(shell: Shell, queue: str) -> Any:
    return json.loads(shell.run("queue", "get", queue, "-o", "json").ok())


def test_what_others_need_is_made_first_and_nothing_twice(shell: Shell) -> None:
    file = shell.file("tree.yaml", TREE)
    plan = shell.run("apply", "-f", file, "--dry-run")
    assert plan.ok().splitlines() == [
        "+ create queue.scheduling.volcano.sh/above",
        "+ create queue.scheduling.volcano.sh/below",
        "    not validated: requires queue.scheduling.volcano.sh/above",
        "+ create job.batch.volcano.sh/below-job in default",
        "    not validated: requires queue.scheduling.volcano.sh/below",
    ]
    assert plan.err == "3 to create, 0 to change, 0 unchanged\n"
    assert "not found" in shell.run("queue", "get", "above").err
    made = shell.run("apply", "-f", file, "--yes").ok()
    assert made.splitlines()[-3:] == [
        "queue.scheduling.volcano.sh/above created",
        "queue.scheduling.volcano.sh/below created",
        "job.batch.volcano.sh/below-job created",
    ]  # fmt: skip
    again = shell.run("apply", "-f", file, "--yes")
    assert (again.ok(), again.err) == ("", "0 to create, 0 to change, 3 unchanged\n")
    gone = shell.run("delete", "-f", file, "--yes").ok().splitlines()
    assert gone[:3] == [
        "- delete job.batch.volcano.sh/below-job in default",
        "- delete queue.scheduling.volcano.sh/below",
        "- delete queue.scheduling.volcano.sh/above",
    ]
    assert shell.run("wait", "queue/above", "--for", "deleted").code == 0
    assert shell.run("delete", "-f", file, "--yes").err == "0 to delete, 3 not found\n"


def test_a_queue_is_deleted_after_its_running_job(shell: Shell) -> None:
    file = shell.file("held.yaml", TREE.replace("below", "holds").replace("above", "held"))
    shell.run("apply", "-f", file, "--yes").ok()
    assert shell.run("wait", "holds-job", "--for", "running").code == 0
    assert shell.run("wait", "queue/holds", "--for", "jsonpath={.status.running}=1").code == 0
    gone = shell.run("delete", "-f", file, "--yes")
    assert gone.ok().splitlines()[-3:] == [
        "job.batch.volcano.sh/holds-job deleted",
        "queue.scheduling.volcano.sh/holds deleted",
        "queue.scheduling.volcano.sh/held deleted",
    ]  # fmt: skip


def test_a_queue_that_others_are_in_isnt_waited_for(shell: Shell) -> None:
    file = shell.file("shared.yaml", QUEUE.replace("NAME", "shared"))
    shell.run("apply", "-f", file, "--yes").ok()
    job = TREE.partition("---")[0].replace("below", "shared")
    shell.run("apply", "-f", shell.file("job.yaml", job), "--yes").ok()
    assert shell.run("wait", "queue/shared", "--for", "jsonpath={.status.running}=1").code == 0
    refused = shell.run("delete", "-f", file, "--yes")
    assert refused.code == 1
    assert "shared.yaml:1:1: queue.scheduling.volcano.sh/shared: " in refused.err
    assert "delete or finish their jobs first" in refused.err
    assert "waiting" not in refused.err
    shell.run("delete", "-f", "job.yaml", "-f", file, "--yes").ok()


URGENT = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: in-a-hurry}
spec:
  minAvailable: 1
  priorityClassName: urgent
  tasks:
    - name: w
      replicas: 1
      template: {spec: {restartPolicy: Never, containers: [{name: main, image: x, command: [sleep, "600"]}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: in-a-hurry}
spec: {priorityClassName: urgent, containers: [{name: main, image: x, command: [sleep, "600"]}]}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
"""


def test_who_names_a_priority_class_of_the_same_file_is_judged_once_that_is_there(shell: Shell) -> None:
    file = shell.file("urgent.yaml", URGENT)
    plan = shell.run("apply", "-f", file, "--dry-run")
    assert plan.ok().splitlines() == [
        "+ create priorityclass.scheduling.k8s.io/urgent",
        "+ create job.batch.volcano.sh/in-a-hurry in default",
        "+ create pod/in-a-hurry in default",
        "    not validated: requires priorityclass.scheduling.k8s.io/urgent",
    ]
    made = shell.run("apply", "-f", file, "--yes").ok()
    assert made.splitlines()[-3:] == [
        "priorityclass.scheduling.k8s.io/urgent created",
        "job.batch.volcano.sh/in-a-hurry created",
        "pod/in-a-hurry created",
    ]  # fmt: skip
    shell.run("delete", "-f", file, "--yes").ok()
    mistyped = URGENT.replace("in-a-hurry", "mistyped").replace("metadata: {name: urgent}", "metadata: {name: urgen}")
    file = shell.file("mistyped.yaml", mistyped)
    refused = shell.run("apply", "-f", file, "--dry-run")
    assert refused.code == 1
    assert "no PriorityClass with name urgent was found" in refused.err


def test_a_change_is_shown_as_a_difference_and_asked_about(shell: Shell) -> None:
    shell.run("apply", "-f", shell.file("q.yaml", QUEUE.replace("NAME", "shown")), "--yes").ok()
    changed = shell.file("q2.yaml", QUEUE.replace("NAME", "shown").replace("weight: 2", "weight: 3"))
    plan = shell.run("apply", "-f", changed, "--dry-run").ok().splitlines()
    assert plan[0] == "~ change queue.scheduling.volcano.sh/shown"
    assert "    -  weight: 2" in plan
    assert "    +  weight: 3" in plan
    assert stored(shell, "shown")["spec"]["weight"] == 2
    assert shell.run("apply", "-f", changed, "--yes").ok().endswith("queue.scheduling.volcano.sh/shown configured\n")
    assert stored(shell, "shown")["spec"]["weight"] == 3
    shell.run("delete", "-f", changed, "--yes").ok()


def test_where_one_is_refused_nothing_is_done(shell: Shell) -> None:
    bad = QUEUE.replace("NAME", "refused").replace("weight: 2", "weight: 2, deserved: {cpu: 4}, capability: {cpu: 2}")
    file = shell.file("two.yaml", QUEUE.replace("NAME", "fine") + "---\n" + bad)
    said = shell.run("apply", "-f", file, "--yes")
    assert said.code == 1
    assert "two.yaml:9:30: Queue/refused: spec.deserved.cpu: " in said.err
    assert "deserved[cpu]=4 must be <= capability[cpu]=2" in said.err
    assert "1 object rejected; nothing was changed" in said.err
    assert "not found" in shell.run("queue", "get", "fine").err


def test_a_field_that_there_is_not_is_told_with_its_line(shell: Shell) -> None:
    file = shell.file("typo.yaml", QUEUE.replace("NAME", "typo").replace("{weight: 2}", "\n  wieght: 2"))
    said = shell.run("apply", "-f", file, "--yes")
    assert said.code == 1
    assert "typo.yaml:5:3: Queue/typo: unknown field 'spec.wieght'" in said.err


def test_what_a_person_has_set_is_taken_over_and_a_controllers_only_when_asked(shell: Shell) -> None:
    access = Access(kubeconfig=Path(shell.environment["KUBECONFIG"]))

    def set_weight(weight: int, manager: str) -> None:
        named = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "metadata": {"name": "shared"}}
        body = {**named, "spec": {"weight": weight}}
        access.once(lambda api: api.apply(QUEUES, body, manager=manager, force=True))  # type: ignore[attr-defined]

    file = shell.file("shared.yaml", QUEUE.replace("NAME", "shared"))
    set_weight(5, "kubectl")
    taken = shell.run("apply", "-f", file, "--yes").ok()
    assert '    takes ownership of .spec.weight (conflict with "kubectl")' in taken
    assert stored(shell, "shared")["spec"]["weight"] == 2
    set_weight(7, "autoscaler")
    refused = shell.run("apply", "-f", file, "--yes")
    assert refused.code == 1
    assert 'conflict with "autoscaler"' in refused.err
    assert "To take ownership of the fields, use --force-conflicts." in refused.err
    assert stored(shell, "shared")["spec"]["weight"] == 7
    shell.run("apply", "-f", file, "--yes", "--force-conflicts").ok()
    assert stored(shell, "shared")["spec"]["weight"] == 2
    shell.run("delete", "-f", file, "--yes").ok()


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (
            "apiVersion: apps/v2\nkind: Thing\nmetadata: {name: a}\n",
            "f.yaml:1:1: unknown kind Thing in apps/v2",
        ),
        (QUEUE.replace("name: NAME", "generateName: a-"), "f.yaml:3:1: Queue/a-: metadata.name is required"),
        ("a: [1\n", "f.yaml:2:1: not valid YAML: did not find expected"),
        ("kind: Queue\n", "f.yaml:1:1: not an object: apiVersion, kind and metadata.name are required"),
        ("", "f.yaml: no objects"),
    ],
)
def test_what_can_not_be_applied_anywhere(shell: Shell, text: str, reported: str) -> None:
    said = shell.run("apply", "-f", shell.file("f.yaml", text), "--yes")
    assert said.code == 1
    assert reported in said.err


JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: NAME
spec:
  schedulerName: volcano
  minAvailable: 1
  tasks:
    - name: member
      replicas: 1
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: main
              image: busybox:1.37
              command: ["sleep", "600"]
"""


@pytest.mark.parametrize("way", ["--dry-run", "--yes"])
def test_everything_wrong_in_a_job_is_told_with_its_place_and_nothing_is_to_be_tried_again(
    shell: Shell, way: str
) -> None:
    text = JOB.replace("NAME", "wrong").replace("minAvailable", "minAvailble").replace("replicas: 1", "replicas: three")
    said = shell.run("apply", "-f", shell.file("wrong.yaml", text), way)
    assert said.code == 1
    lines = [line for line in said.err.splitlines() if line.startswith("wrong.yaml:")]
    assert [line.split(": ")[0] for line in lines] == ["wrong.yaml:7:3", "wrong.yaml:10:7"], said
    assert "did you mean 'minAvailable'?" in lines[0] and "spec.tasks[0].replicas" in lines[1]
    assert "ry again" not in said.err


def test_all_that_is_wrong_in_the_files_is_told_in_one_run(shell: Shell) -> None:
    job = JOB.replace("NAME", "many").replace("replicas: 1", "replicas: 1\n      minAvailable: 3")
    job = job.replace("schedulerName: volcano", "maxRetry: often").replace("    - name: member", "    - name: Member")
    other = QUEUE.replace("NAME", "many").replace("weight: 2", "weight: 2, weight: 3")
    nameless = "---\nkind: Queue\n---\napiVersion: apps/v2\nkind: Thing\nmetadata: {name: a}\n"
    said = shell.run("apply", "-f", shell.file("many.yaml", f"{job}---\n{other}{nameless}---\na: [1\n"), "--dry-run")
    assert said.code == 1
    reported = [line.removeprefix("many.yaml:") for line in said.err.splitlines() if line.startswith("many.yaml:")]
    assert sorted(reported, key=lambda line: int(line.partition(":")[0])) == [
        '6:3: Job/many: spec.maxRetry: must be an integer, got "often"',
        "9:7: Job/many: spec.tasks[0].name: Invalid value: \"Member\": should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'",
        "11:7: Job/many: 'minAvailable' is greater than 'replicas' in task: Member, job: many",
        "23:19: Queue/many: duplicate field 'spec.weight', written first in line 23",
        "25:1: not an object: apiVersion, kind and metadata.name are required",
        next(line for line in reported if line.startswith("27:1: unknown kind Thing in apps/v2: ")),
        "32:1: not valid YAML: did not find expected ',' or ']', while parsing a flow sequence that begins in line 31",
    ], said


def test_what_can_not_be_changed_is_named_and_recreated_on_demand(shell: Shell) -> None:
    file = shell.file("fixed.yaml", JOB.replace("NAME", "fixed"))
    shell.run("apply", "-f", file, "--yes").ok()
    before = shell.run("job", "get", "fixed", "-o", "jsonpath={.metadata.uid}").out
    changed = shell.file("fixed.yaml", JOB.replace("NAME", "fixed").replace('"600"', '"601"'))
    refused = shell.run("apply", "-f", changed, "--yes")
    assert refused.code == 1
    assert "changed: spec.tasks[0].template.spec.containers[0].command[1]" in refused.err
    assert "--recreate" in refused.err
    assert shell.run("job", "get", "fixed", "-o", "jsonpath={.metadata.uid}").out == before
    planned = shell.run("apply", "-f", changed, "--dry-run", "--recreate").ok()
    assert "-+ recreate job.batch.volcano.sh/fixed in default" in planned
    assert "job.batch.volcano.sh/fixed recreated" in shell.run("apply", "-f", changed, "--yes", "--recreate").ok()
    assert shell.run("job", "get", "fixed", "-o", "jsonpath={.metadata.uid}").out != before
    assert "1 unchanged" in shell.run("apply", "-f", changed, "--yes").err
    shell.run("delete", "-f", changed, "--yes").ok()


def test_what_would_be_refused_anew_is_not_deleted(shell: Shell) -> None:
    file = shell.file("kept.yaml", JOB.replace("NAME", "kept"))
    shell.run("apply", "-f", file, "--yes").ok()
    wrong = shell.file("kept.yaml", JOB.replace("NAME", "kept").replace("restartPolicy: Never", "restartPolicy: Odd"))
    refused = shell.run("apply", "-f", wrong, "--yes", "--recreate")
    assert refused.code == 1 and "kept.yaml:13:11: " in refused.err, refused
    assert shell.run("job", "get", "kept", "-o", "name").code == 0
    shell.run("delete", "-f", file, "--yes").ok()


def test_several_fields_that_kubectl_has_set_are_no_conflict(shell: Shell) -> None:
    """The server says "conflicts with" where there is more than one."""
    access = Access(kubeconfig=Path(shell.environment["KUBECONFIG"]))
    text = JOB.replace("NAME", "theirs").replace("minAvailable: 1", "minAvailable: 1\n  maxRetry: 5")
    document = yaml.safe_load(text)
    manager = "kubectl-client-side-apply"
    access.once(lambda api: api.apply(JOBS, document, namespace="default", manager=manager, force=True))  # type: ignore[attr-defined]
    changed = shell.file("theirs.yaml", text.replace('"600"', '"601"').replace("maxRetry: 5", "maxRetry: 4"))
    refused = shell.run("apply", "-f", changed, "--yes")
    assert refused.code == 1
    assert "changed: spec.maxRetry, spec.tasks[0].template.spec.containers[0].command[1]" in refused.err
    assert "--recreate" in refused.err
    assert "job.batch.volcano.sh/theirs recreated" in shell.run("apply", "-f", changed, "--yes", "--recreate").ok()
    shell.run("delete", "-f", changed, "--yes").ok()
