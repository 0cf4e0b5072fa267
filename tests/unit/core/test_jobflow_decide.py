"""What follows from one look at a JobFlow: which jobs are made, what is remembered, and what is said."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from tests.support.flow_world import Crash, FlowWorld, entry
from vcbatch.api.names import CREATED_BY_JOB_FLOW, CREATED_BY_JOB_TEMPLATE
from vcbatch.core.jobflow import decide

Json = dict[str, Any]


def _chain() -> FlowWorld:
    world = FlowWorld(entry("a"), entry("b", "a"), entry("c", "a", "b"))
    world.settle()
    return world


# The order of jobs


def test_each_job_follows_those_that_it_depends_on() -> None:
    world = _chain()
    assert (world.made, world.phase) == (["f-a"], "Pending")
    world.finish("f-a", phase="Running")
    assert (world.made, world.phase) == (["f-a"], "Running")
    world.finish("f-a")
    assert world.made == ["f-a", "f-b"]
    world.finish("f-b")
    world.finish("f-c")
    assert (world.made, world.phase, world.message) == (["f-a", "f-b", "f-c"], "Succeed", "")
    assert world.reported("Created") == [f"create a job named f-{name}!" for name in "abc"]


def test_a_job_is_named_marked_and_owned_as_volcanos() -> None:
    world = FlowWorld(entry("a"))
    world.template("a", queue="q", maxRetry=3)
    world.settle()
    metadata = world.jobs["f-a"]["metadata"]
    marks = {CREATED_BY_JOB_FLOW: "ns.f", CREATED_BY_JOB_TEMPLATE: "ns.a"}
    assert metadata["labels"] == metadata["annotations"] == marks
    owner = {"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "name": "f", "uid": "f-uid"}
    assert metadata["ownerReferences"] == [{**owner, "controller": True, "blockOwnerDeletion": True}]
    assert world.jobs["f-a"]["spec"] == world.templates["a"]["spec"]


def test_a_label_that_would_be_too_long_ends_in_a_tag_and_the_annotation_says_it_all() -> None:
    name = "a" * 40
    world = FlowWorld(entry("b"), name=name)
    world.flow["metadata"]["namespace"] = "n" * 40
    world.settle()
    metadata = world.jobs[f"{name}-b"]["metadata"]
    label = metadata["labels"][CREATED_BY_JOB_FLOW]
    assert len(label) <= 63
    assert label.startswith("n" * 40 + ".aaa")
    assert metadata["annotations"][CREATED_BY_JOB_FLOW] == f"{'n' * 40}.{name}"


def test_a_finished_job_that_is_deleted_counts_and_isnt_made_again() -> None:
    world = _chain()
    world.finish("f-a")
    world.vanish("f-a")
    world.finish("f-b")
    world.finish("f-c")
    assert (world.made, world.phase) == (["f-a", "f-b", "f-c"], "Succeed")
    assert world.status["completedJobs"] == ["f-a", "f-b", "f-c"]


def test_a_job_that_ended_and_went_between_two_looks_counts() -> None:
    world = _chain()
    world.job_is("f-a", "Completed")
    world.vanish("f-a")
    world.settle()
    assert world.made == ["f-a", "f-b"]


def test_a_job_that_is_deleted_before_it_ended_is_made_again() -> None:
    world = _chain()
    world.job_is("f-a", "Running")
    world.settle()
    world.vanish("f-a")
    world.settle()
    assert world.made == ["f-a", "f-a"]
    assert "f-b" not in world.jobs


def test_nothing_is_done_to_a_flow_that_is_being_deleted() -> None:
    world = FlowWorld(entry("a"))
    world.flow["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    assert decide(world.view(), now=world.now).nothing_to_do


def test_jobs_of_another_flow_of_the_same_name_are_nothing_to_it() -> None:
    world = FlowWorld(entry("a"), entry("b", "a"))
    world.settle()
    world.finish("f-a")
    world.flow = {**world.flow, "metadata": {**world.flow["metadata"], "uid": "another"}, "status": {}}
    world.settle()
    assert world.made == ["f-a", "f-b"]
    assert (world.phase, world.status.get("completedJobs")) == ("Pending", None)
    assert world.reported("ForeignJob") == ["a waits: a job f-a exists and isn't this flow's"]
    world.jobs.clear()
    world.settle()
    assert world.made == ["f-a", "f-b", "f-a"]


# Failures and other tries


def test_a_failure_fails_the_flow_and_says_what_is_never_made() -> None:
    world = FlowWorld(entry("a"), entry("b", "a"), entry("c", "b"), entry("d"), entry("e", "d"))
    world.settle()
    world.finish("f-a", phase="Failed")
    assert (world.phase, world.made) == ("Failed", ["f-a", "f-d"])
    assert world.message == "failed: a, never made for what they depend on: b, c, skipped: e"
    assert world.reported("JobFailed") == [world.message]
    world.finish("f-d")
    assert (world.made, world.status["completedJobs"]) == (["f-a", "f-d"], ["f-d"])


def test_a_terminated_job_fails_a_running_flow() -> None:
    world = _chain()
    world.finish("f-a", phase="Running")
    world.finish("f-a", phase="Terminated")
    assert (world.phase, world.status["terminatedJobs"]) == ("Failed", ["f-a"])


def test_another_try_makes_what_failed_anew_and_keeps_what_is_done() -> None:
    world = FlowWorld(entry("a"), entry("b", "a"), entry("c", "b"))
    world.settle()
    world.finish("f-a")
    world.finish("f-b", phase="Failed")
    world.lingers = True
    world.command("RestartJob")
    world.settle()
    assert (world.phase, world.made) == ("Running", ["f-a", "f-b"])
    world.vanish("f-b")
    world.settle()
    assert world.made == ["f-a", "f-b", "f-b"]
    assert world.reported("CommandIssued")
    world.finish("f-b")
    world.finish("f-c")
    assert world.phase == "Succeed"
    states = [each["state"] for each in world.status["jobStatusList"][1]["runningHistories"]]
    assert states == ["Pending", "Failed", "Pending", "Completed"]
    assert set(world.status["ledger"]) == {"finished", "jobs"}


def test_a_discarded_job_that_went_isnt_taken_for_a_failure_when_its_successor_cant_be_made_at_once() -> None:
    world = _chain()
    world.finish("f-a", phase="Failed")
    world.lingers = True
    world.command("RestartJob")
    world.settle()
    world.vanish("f-a")
    gone = list(world.departed)
    for _ in range(2):
        with suppress(Crash):
            world.reconcile(writes=1)  # whatever comes first is done; what went is seen again by the next look
        world.departed = gone
    world.settle()
    assert (world.phase, world.made) == ("Pending", ["f-a", "f-a"])
    assert "discarded" not in world.status["ledger"]


def test_another_try_of_a_job_that_is_gone_already() -> None:
    world = _chain()
    world.finish("f-a", phase="Failed")
    world.vanish("f-a")
    world.settle()
    assert world.phase == "Failed"
    world.command("RestartJob")
    world.settle()
    assert (world.phase, world.made) == ("Pending", ["f-a", "f-a"])


def test_terminating_ends_what_runs_and_another_try_begins_again() -> None:
    world = FlowWorld(entry("a"), entry("b"), entry("c", "a"))
    world.settle()
    world.finish("f-a")
    world.command("TerminateJob")
    world.reconcile()
    assert world.phase == "Terminating"
    world.settle()
    assert (world.phase, world.phase_of("f-b"), world.phase_of("f-c")) == ("Failed", "Terminated", "Terminated")
    world.command("RestartJob")
    world.settle()
    assert (world.phase, world.made) == ("Running", ["f-a", "f-b", "f-c", "f-b", "f-c"])


# Suspending


def test_a_suspended_flow_stands_still_and_goes_on_with_what_it_stopped() -> None:
    world = FlowWorld(entry("a"), entry("b"), entry("c", "a"))
    world.settle()
    world.job_is("f-b", "Aborted")
    world.command("AbortJob")
    world.settle()
    assert (world.phase_of("f-a"), world.phase_of("f-b")) == ("Aborted", "Aborted")
    assert world.message == "suspended: no job is made"
    world.command("ResumeJob")
    world.settle()
    assert (world.phase_of("f-a"), world.phase_of("f-b")) == ("Pending", "Aborted")
    assert "aborted" not in world.status["ledger"]


def test_nothing_is_made_while_suspended() -> None:
    world = _chain()
    world.command("AbortJob")
    world.reconcile()
    world.finish("f-a")
    assert world.made == ["f-a"]
    world.command("ResumeJob")
    world.settle()
    assert world.made == ["f-a", "f-b"]


def test_resuming_before_a_job_was_suspended_leaves_it_running() -> None:
    world = _chain()
    world.finish("f-a", phase="Running")
    world.command("AbortJob")
    world.reconcile()
    assert [each["action"] for each in world.commands.values()] == ["AbortJob"]
    world.command("ResumeJob")
    world.settle()
    assert world.phase_of("f-a") == "Running"
    assert not world.commands


def test_a_job_that_was_suspended_after_all_is_resumed() -> None:
    world = _chain()
    world.finish("f-a", phase="Running")
    world.command("AbortJob")
    world.reconcile()
    world.command("ResumeJob")
    with pytest.raises(Crash):
        world.reconcile(writes=1)
    world.obey()
    assert world.phase_of("f-a") == "Aborted"
    world.settle()
    assert world.phase_of("f-a") == "Pending"


# Commands


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("RestartJob", "RestartJob does nothing to a flow that is Pending"),
        ("CompleteJob", "want one of AbortJob"),
        ("ResumeJob", "the flow isn't suspended"),
    ],
)
def test_a_command_without_sense_is_removed_with_a_word(action: str, why: str) -> None:
    world = _chain()
    world.command(action)
    world.settle()
    assert not world.commands
    assert why in world.reported("CommandRejected")[0]


def test_a_command_for_another_flow_of_that_name_does_nothing() -> None:
    world = _chain()
    world.command("AbortJob", uid="another")
    world.settle()
    assert not world.commands
    assert "which is no more" in world.reported("CommandRejected")[0]
    assert world.message == ""


def test_a_command_is_carried_out_once_whatever_dies_in_between() -> None:
    world = _chain()
    world.finish("f-a", phase="Failed")
    world.command("RestartJob", name="again")
    command = dict(world.commands["again"])
    world.settle()
    world.finish("f-a", phase="Failed")
    assert world.made == ["f-a", "f-a"]
    world.command("RestartJob", name="again")
    world.commands["again"] = command
    world.flow["status"]["ledger"]["commands"] = [command["metadata"]["uid"]]
    world.settle()
    assert (world.made, world.phase, world.commands) == (["f-a", "f-a"], "Failed", {})


def test_commands_are_taken_one_after_the_other() -> None:
    world = _chain()
    world.command("AbortJob")
    world.command("ResumeJob")
    decision = world.reconcile()
    assert decision.requeue_at == world.now
    assert world.status["ledger"]["suspended"]
    world.settle()
    assert "suspended" not in world.status["ledger"]


# What it is made of


@pytest.mark.parametrize(
    ("flows", "why"),
    [
        ([entry("a", "b"), entry("b", "a")], "circle of a, b"),
        ([entry("a"), entry("b", "z")], "vertex is not defined: z"),
        ([entry("a"), entry("a", "a")], "circle of a"),
    ],
)
def test_what_is_no_order_of_jobs_makes_none_and_says_why(flows: list[Json], why: str) -> None:
    world = FlowWorld(*flows, templates=["a", "b"])
    world.settle()
    assert (world.made, world.phase) == ([], "Pending")
    assert why in world.message
    assert world.reported("InvalidFlow") == [world.message]
    world.change(flows=[entry("a")])
    world.settle()
    assert (world.made, world.message) == (["f-a"], "")


def test_a_flow_of_nothing_says_so() -> None:
    world = FlowWorld()
    world.settle()
    assert (world.phase, world.message) == ("Pending", "spec.flows is empty: there is nothing to run")


def test_only_the_job_waits_whose_template_is_missing() -> None:
    world = FlowWorld(entry("a"), entry("b"), templates=["b"])
    world.settle()
    assert (world.made, world.message) == (["f-b"], "waiting for its JobTemplate: a")
    assert world.reported("JobTemplateNotFound") == [world.message]
    world.template("a")
    world.settle()
    assert (world.made, world.message) == (["f-b", "f-a"], "")


def test_a_job_stays_as_it_was_made_and_the_next_is_of_the_new_template() -> None:
    world = FlowWorld(entry("a"), entry("b", "a"))
    world.settle()
    world.template("a", maxRetry=7)
    world.template("b", maxRetry=7)
    world.settle()
    assert "maxRetry" not in world.jobs["f-a"]["spec"]
    assert world.reported("JobTemplateChanged") == ["made before the JobTemplate changed, and left as they are: a"]
    world.finish("f-a")
    assert (world.jobs["f-b"]["spec"]["maxRetry"], world.message) == (7, "")


def test_a_patch_changes_fields_and_entries_and_leaves_the_rest() -> None:
    container = {"name": "main", "image": "i", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
    tasks = [
        {"name": "w", "replicas": 1, "template": {"spec": {"containers": [container]}}},
        {"name": "v", "replicas": 2},
    ]
    patch = {
        "queue": "q",
        "tasks": [
            {
                "name": "w",
                "template": {"spec": {"containers": [{"name": "main", "env": [{"name": "B", "value": "3"}]}]}},
            },
            {"name": "u", "replicas": 4},
        ],
        "volumes": [{"mountPath": "/b", "volumeClaimName": "c"}],
    }
    world = FlowWorld(entry("a", patch={"jobSpec": patch}))
    world.template("a", tasks=tasks, volumes=[{"mountPath": "/a"}, {"mountPath": "/b"}], policies=[{"event": "*"}])
    world.settle()
    spec = world.jobs["f-a"]["spec"]
    assert [task["name"] for task in spec["tasks"]] == ["w", "v", "u"]
    patched = spec["tasks"][0]["template"]["spec"]["containers"][0]
    assert patched == {**container, "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "3"}]}
    assert (spec["tasks"][0]["replicas"], spec["queue"], spec["policies"]) == (1, "q", [{"event": "*"}])
    assert spec["volumes"] == [{"mountPath": "/a"}, {"mountPath": "/b", "volumeClaimName": "c"}]
    assert world.templates["a"]["spec"]["tasks"] == tasks


def test_an_entry_that_is_taken_out_leaves_its_job_and_counts_no_more() -> None:
    world = FlowWorld(entry("a"), entry("b"))
    world.settle()
    world.change(flows=[entry("b")])
    world.finish("f-b")
    assert (world.phase, sorted(world.jobs)) == ("Succeed", ["f-a", "f-b"])
    assert world.status["pendingJobs"] == ["f-a"]


# What is kept


def test_jobs_of_a_flow_that_is_done_go_where_that_is_asked_for_and_their_end_is_kept() -> None:
    world = FlowWorld(entry("a"), jobRetainPolicy="delete")
    world.settle()
    world.finish("f-a")
    assert (world.phase, world.jobs) == ("Succeed", {})
    assert world.status["completedJobs"] == ["f-a"]
    assert world.status["conditions"]["f-a"]["phase"] == "Completed"


@pytest.mark.parametrize("policy", ["", "retain"])
def test_jobs_stay_otherwise(policy: str) -> None:
    world = FlowWorld(entry("a"), jobRetainPolicy=policy)
    world.settle()
    world.finish("f-a")
    assert list(world.jobs) == ["f-a"]


def test_jobs_of_a_flow_that_failed_stay() -> None:
    world = FlowWorld(entry("a"), jobRetainPolicy="delete")
    world.settle()
    world.finish("f-a", phase="Failed")
    assert list(world.jobs) == ["f-a"]


def test_phases_that_passed_while_nobody_looked_are_in_the_history() -> None:
    world = FlowWorld(entry("a"))
    world.settle()
    for phase in ("Pending", "Running", "Restarting", "Running", "Completed"):
        world.job_is("f-a", phase, retryCount=1, runningDuration="1m0s")
    world.settle()
    reported = world.status["jobStatusList"][0]
    assert [each["state"] for each in reported["runningHistories"]] == ["Pending", "Restarting", "Running", "Completed"]
    assert all(each["endTimestamp"] for each in reported["runningHistories"][:-1])
    assert (reported["restartCount"], reported["endTimestamp"]) == (1, "2026-11-21T12:01:00Z")


def test_a_history_is_bounded() -> None:
    world = FlowWorld(entry("a"))
    for _ in range(40):
        world.settle()
        world.job_is("f-a", "Restarting")
        world.settle()
        world.job_is("f-a", "Running")
        world.now += timedelta(seconds=1)
    world.settle()
    assert len(world.status["jobStatusList"][0]["runningHistories"]) == 32


def test_a_look_that_finds_everything_as_it_was_writes_nothing() -> None:
    world = _chain()
    world.now += timedelta(hours=1)
    assert decide(world.view(), now=world.now).nothing_to_do


def test_what_others_wrote_into_the_status_stays() -> None:
    world = _chain()
    world.flow["status"]["mine"] = 1
    world.finish("f-a")
    assert world.status["mine"] == 1


def test_a_status_that_volcano_wrote_is_understood() -> None:
    world = _chain()
    world.finish("f-a")
    world.events.clear()
    del world.flow["status"]["ledger"]
    world.settle()
    assert world.reported("Created") == []
    assert world.made == ["f-a", "f-b"]
