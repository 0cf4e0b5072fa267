"""The CronJob controller against an adversary: time passes, clocks jump, jobs end, people delete jobs and edit
schedules, the controller dies between any two writes and looks more often than it has to. Always:

* no slot starts a job twice, and every job starts at or after its slot,
* with Forbid no job starts while another of ours is unfinished,
* with Replace no more than one of ours is unfinished once it has come to rest,
* nothing starts while suspended,
* `status.active` is what runs, once it has come to rest,
* a slot that is due and that nothing speaks against has started its job, once it has come to rest.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.cron_world import Crash, CronWorld
from tests.support.examples import examples
from vcbatch.api.cron import parse_cron
from vcbatch.api.names import CRONJOB_SCHEDULED_TIMESTAMP
from vcbatch.api.timestamps import parse_time
from vcbatch.core.cronjob.slots import slots_of

SCHEDULES = ("* * * * *", "*/7 * * * *", "30 1 * * *", "@every 90s", "@every 20s")
BEFORE_A_CHANGE = datetime(2026, 10, 24, 23, 0, tzinfo=UTC)
"""Berlin's clocks are put back two hours later."""


class CronJobMachine(RuleBasedStateMachine):
    @initialize(
        schedule=st.sampled_from(SCHEDULES),
        zone=st.sampled_from([None, "Europe/Berlin"]),
        policy=st.sampled_from(["Allow", "Forbid", "Replace"]),
        deadline=st.none() | st.integers(1, 300),
        history=st.integers(0, 2),
        lingers=st.booleans(),
    )
    def begin(
        self, schedule: str, zone: str | None, policy: str, deadline: int | None, history: int, lingers: bool
    ) -> None:
        limits = {"successfulJobsHistoryLimit": history, "failedJobsHistoryLimit": history}
        spec: dict[str, Any] = {"schedule": schedule, "concurrencyPolicy": policy, **limits}
        spec |= {"timeZone": zone} if zone else {}
        spec |= {"startingDeadlineSeconds": deadline} if deadline is not None else {}
        self.world = CronWorld(now=BEFORE_A_CHANGE, **spec)
        self.world.lingers = lingers
        self.policy = policy
        self.seen = 0
        self.started: set[datetime] = set()
        self.latest = self.world.now
        self.rested = False

    # What happens

    @rule(seconds=st.integers(1, 600))
    def pass_time(self, seconds: int) -> None:
        self.world.now += timedelta(seconds=seconds)
        self.rested = False

    @rule(hours=st.integers(-4, 4))
    def jump(self, hours: int) -> None:
        self.world.now += timedelta(hours=hours)
        self.rested = False

    @rule(writes=st.integers(0, 3), data=st.data())
    def reconcile_and_die(self, writes: int, data: st.DataObject) -> None:
        try:
            self._reconcile(writes=writes)
        except Crash:
            self.world.rescheduled_at = None

    @rule()
    def reconcile(self) -> None:
        self._reconcile()

    @rule()
    def rest(self) -> None:
        for _ in range(20):
            decision = self._reconcile()
            if decision.status is None and not decision.deletes and not decision.creates:
                self.rested = True
                return
        raise AssertionError("it doesn't come to rest")

    @precondition(lambda self: self.world.unfinished)
    @rule(data=st.data(), phase=st.sampled_from(["Completed", "Failed", "Terminated", "Aborted", "Running"]))
    def a_job_changes(self, data: st.DataObject, phase: str) -> None:
        self.world.finish(data.draw(st.sampled_from(self.world.unfinished)), phase)
        self.rested = False

    @precondition(lambda self: any("deletionTimestamp" in job["metadata"] for job in self.world.jobs.values()))
    @rule()
    def deleted_jobs_vanish(self) -> None:
        for name in [name for name, job in self.world.jobs.items() if "deletionTimestamp" in job["metadata"]]:
            self.world.vanish(name)
        self.rested = False

    @precondition(lambda self: self.rested and self.world.jobs)
    @rule(data=st.data())
    def somebody_deletes_a_job(self, data: st.DataObject) -> None:
        """After it was written down: a slot whose job is gone before anybody knew of it is started again, as by every
        controller of this kind."""
        self.world.vanish(data.draw(st.sampled_from(sorted(self.world.jobs))))
        self.rested = False

    @rule(suspend=st.booleans())
    def suspend(self, suspend: bool) -> None:
        self.world.change(suspend=suspend)
        self.rested = False

    @rule(schedule=st.sampled_from(SCHEDULES))
    def edit(self, schedule: str) -> None:
        self.world.change(schedule=schedule)
        self.rested = False

    def _reconcile(self, *, writes: int | None = None) -> Any:
        busy = bool(self.world.unfinished)
        before = len(self.world.made)
        try:
            return self.world.reconcile(writes=writes)
        finally:
            if len(self.world.made) > before:
                assert not self.world.cron_job["spec"].get("suspend")
                assert not (busy and self.policy == "Forbid")
                self._note_started()
                self.rested = False

    def _note_started(self) -> None:
        for name in self.world.made[self.seen :]:
            slot = parse_time(self.world.jobs[name]["metadata"]["annotations"][CRONJOB_SCHEDULED_TIMESTAMP])
            assert slot not in self.started, "started twice"
            assert slot <= self.world.now, "started early"
            self.started.add(slot)
        self.seen = len(self.world.made)

    # What holds

    @invariant()
    def active_is_what_runs(self) -> None:
        if not self.rested:
            return
        jobs = self.world.jobs
        running = [name for name in self.world.unfinished if "deletionTimestamp" not in jobs[name]["metadata"]]
        assert sorted(self.world.active) == sorted(running)
        if self.policy != "Allow":
            assert len(running) <= 1

    @invariant()
    def what_is_due_has_started(self) -> None:
        spec = self.world.cron_job["spec"]
        blocked = self.policy == "Forbid" and self.world.unfinished
        if not self.rested or spec.get("suspend") or blocked:
            return
        view, status = self.world.view(), self.world.status
        zone = view.zones(spec.get("timeZone") or "UTC")
        assert zone is not None
        since = parse_time(status.get("lastScheduleTime") or self.world.cron_job["metadata"]["creationTimestamp"])
        due = slots_of(parse_cron(spec["schedule"]), zone=zone, since=since).last(self.world.now)
        starts = [since]
        if not_before := status.get("ledger", {}).get("notBefore"):
            starts.append(parse_time(not_before))
        if (deadline := spec.get("startingDeadlineSeconds")) is not None:
            starts.append(self.world.now - timedelta(seconds=deadline))
        assert due is None or due <= max(starts)


CronJobMachine.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40)
TestCronJobMachine = CronJobMachine.TestCase


def test_a_year_of_berlin_starts_exactly_what_the_oracle_says() -> None:
    """Every 6 hours and at half past two, through both clock changes."""
    zone, line = "Europe/Berlin", "30 2,8,14,20 * * *"
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    world = CronWorld(now=begin, schedule=line, timeZone=zone, concurrencyPolicy="Replace")
    world.pass_time(days=365)
    tz = world.view().zones(zone)
    assert tz is not None
    expected = [
        begin + timedelta(minutes=30 * number)
        for number in range(1, 365 * 48 + 1)
        if (begin + timedelta(minutes=30 * number)).astimezone(tz).strftime("%H:%M")
        in ("02:30", "08:30", "14:30", "20:30")
    ]
    assert world.made == [f"c-{int(slot.timestamp()) // 60}" for slot in expected]
    assert len(expected) == 365 * 4  # one is skipped in spring, and one comes twice in autumn
