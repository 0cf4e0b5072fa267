"""`vcbatch queue delete --drain`: a queue goes when what is in it has ended, and nothing new comes into it."""

from __future__ import annotations

import json

import click
import pytest

from tests.integration.cli.conftest import Shell

pytestmark = pytest.mark.xdist_group("cli")

JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: NAME}
spec:
  queue: QUEUE
  minAvailable: 1
  tasks:
    - name: w
      replicas: 1
      template:
        spec:
          restartPolicy: Never
          containers:
            - {name: main, image: x, command: [sh, -c, "until [ -e END ]; do sleep 0.1; done"]}
"""


def _running(shell: Shell, job: str, queue: str) -> None:
    """A queue with a job that runs until the file `end` is there."""
    shell.run("queue", "create", queue).ok()
    end = str(shell.folder / "end")
    text = JOB.replace("NAME", job).replace("QUEUE", queue).replace("END", end)
    shell.run("apply", "-f", shell.file("job.yaml", text), "--yes").ok()
    counted = ("--for", "jsonpath={.status.running}=1", "--timeout", "60s")
    assert shell.run("wait", f"queue/{queue}", *counted).code == 0


def test_a_queue_is_emptied_and_goes(shell: Shell) -> None:
    _running(shell, "lasting", "drained")
    draining = shell.start("queue", "delete", "drained", "--drain", "--timeout", "120s")
    try:
        assert draining.stdout is not None
        assert draining.stderr is not None
        assert draining.stdout.readline() == "queue.scheduling.volcano.sh/drained closed\n"
        assert draining.stderr.readline() == "queue drained: 1 running\n"
        late = shell.run(
            "apply", "-f", shell.file("late.yaml", JOB.replace("NAME", "late").replace("QUEUE", "drained")), "--yes"
        )
        assert late.code == 1
        assert "drained" in late.err
        (shell.folder / "end").touch()
        out, err = draining.communicate(timeout=60)
    finally:
        draining.kill()
    assert (draining.returncode, out, err) == (0, "queue.scheduling.volcano.sh/drained deleted\n", "")
    assert shell.run("queue", "get", "drained").code == 1


def test_a_suspended_job_is_waited_for(shell: Shell) -> None:
    """It has no PodGroup meanwhile, and the queue must be there when it is resumed."""
    _running(shell, "resting", "held")
    shell.run("job", "suspend", "resting").ok()
    assert shell.run("wait", "job/resting", "--for", "phase=Aborted", "--timeout", "60s").code == 0
    draining = shell.start("queue", "delete", "held", "--drain", "--timeout", "120s")
    try:
        assert draining.stderr is not None
        said = iter(draining.stderr.readline, "")
        assert any("1 jobs without a PodGroup: default/resting Aborted" in line for line in said)
        shell.run("job", "resume", "resting").ok()
        assert shell.run("wait", "job/resting", "--for", "phase=Running", "--timeout", "60s").code == 0
        assert draining.poll() is None
        (shell.folder / "end").touch()
        draining.communicate(timeout=60)
    finally:
        draining.kill()
    assert draining.returncode == 0
    assert shell.run("queue", "get", "held").code == 1


def test_one_that_takes_too_long_stays_closed_and_others_go(shell: Shell) -> None:
    _running(shell, "long", "patient")
    shell.run("queue", "create", "empty").ok()
    done = shell.run("queue", "delete", "empty", "patient", "--drain", "--timeout", "3s")
    assert done.code == 124
    assert "queue.scheduling.volcano.sh/empty deleted" in done.out
    assert "the queues stay closed. To reopen them: `vcbatch queue open patient`" in done.err
    assert json.loads(shell.run("queue", "get", "patient", "-o", "json").ok())["status"]["state"] == "Closing"
    (shell.folder / "end").touch()
    shell.run("queue", "delete", "patient", "--drain", "--timeout", "60s").ok()


def test_one_that_others_are_below_is_left_open_unless_they_go_as_well(shell: Shell) -> None:
    shell.run("queue", "create", "upper").ok()
    shell.run("queue", "create", "lower", "--parent", "upper").ok()
    kept = shell.run("queue", "delete", "upper", "--drain", "--timeout", "60s")
    assert (kept.code, kept.out) == (1, "")
    assert "queue upper has child queues: lower" in kept.err
    assert "vcbatch queue delete --drain upper lower" in kept.err
    assert json.loads(shell.run("queue", "get", "upper", "-o", "json").ok())["status"]["state"] == "Open"
    gone = shell.run("queue", "delete", "upper", "lower", "--drain", "--timeout", "60s").ok()
    assert [line for line in gone.splitlines() if "deleted" in line] == [
        "queue.scheduling.volcano.sh/lower deleted",
        "queue.scheduling.volcano.sh/upper deleted",
    ]


def test_the_lowest_goes_first_and_who_is_not_there_holds_up_nobody(shell: Shell) -> None:
    shell.run("queue", "create", "over").ok()
    shell.run("queue", "create", "under", "--parent", "over").ok()
    done = shell.run("queue", "delete", "nobody", "over", "under")
    assert (done.code, done.out) == (
        1,
        "queue.scheduling.volcano.sh/under deleted\nqueue.scheduling.volcano.sh/over deleted\n",
    )
    assert done.err.count("error:") == 1


def test_a_queue_is_opened_after_the_one_above_it(shell: Shell) -> None:
    shell.run("queue", "create", "above").ok()
    shell.run("queue", "create", "below", "--parent", "above").ok()
    for name in ("below", "above"):
        shell.run("wait", f"queue/{name}", "--for", "open", "--timeout", "60s")
        shell.run("queue", "close", name).ok()
        shell.run("wait", f"queue/{name}", "--for", "closed", "--timeout", "60s")
    refused = shell.run("queue", "open", "below")
    assert (refused.code, refused.out) == (1, "")
    assert "queue below can't be opened: its parent above is Closed" in refused.err
    shell.run("queue", "open", "above", "below").ok()
    assert shell.run("wait", "queue/below", "--for", "open", "--timeout", "60s").code == 0
    shell.run("queue", "delete", "above", "below").ok()


def test_a_limit_without_draining_is_refused(shell: Shell) -> None:
    with pytest.raises(click.UsageError, match="--timeout requires --drain"):
        shell.run("queue", "delete", "any", "--timeout", "3s")


def test_a_refusal_names_what_is_in_the_way_and_how_to_wait_for_it(shell: Shell) -> None:
    _running(shell, "held-up", "kept")
    kubeconfig = shell.environment["KUBECONFIG"]
    refused = shell.run("queue", "delete", "kept", "--kubeconfig", kubeconfig)
    assert refused.code == 1
    assert "because it has 1 PodGroups (1 Running): Job default/held-up" in refused.err
    assert f"`vcbatch queue delete --drain kept --kubeconfig {kubeconfig}`" in refused.err
    (shell.folder / "end").touch()
    shell.run("queue", "delete", "kept", "--drain", "--timeout", "60s").ok()


def test_a_job_that_has_no_pod_group_is_waited_for(shell: Shell) -> None:
    _running(shell, "paused", "waits")
    shell.run("job", "suspend", "paused").ok()
    suspended = ("--for", "jsonpath={.status.state.phase}=Aborted", "--timeout", "60s")
    assert shell.run("wait", "job/paused", *suspended).code == 0
    draining = shell.start("queue", "delete", "waits", "--drain", "--timeout", "120s")
    try:
        assert draining.stdout is not None
        assert draining.stderr is not None
        assert draining.stdout.readline() == "queue.scheduling.volcano.sh/waits closed\n"
        said = draining.stderr.readline()
        while said == "queue waits: 1 running\n":  # its pods still end
            said = draining.stderr.readline()
        assert said == "queue waits: 1 jobs without a PodGroup: default/paused Aborted\n"
        refused = shell.run("queue", "delete", "waits")
        assert refused.code == 1
        assert "because it has 1 unfinished Jobs (default/paused Aborted)" in refused.err
        assert "`vcbatch queue delete --drain waits`" in refused.err
        shell.run("job", "resume", "paused").ok()
        counted = ("--for", "jsonpath={.status.running}=1", "--timeout", "60s")
        assert shell.run("wait", "job/paused", *counted).code == 0
        assert json.loads(shell.run("queue", "get", "waits", "-o", "json").ok())["status"]["state"] == "Closing"
        (shell.folder / "end").touch()
        out, _ = draining.communicate(timeout=60)
    finally:
        draining.kill()
    assert (draining.returncode, out) == (0, "queue.scheduling.volcano.sh/waits deleted\n")
