"""The JobFlow controller against an adversary: jobs run, end, fail and are deleted, people send Commands and change
templates, jobs go slowly, and the controller dies between any two writes. What a flow is to do is told by an
oracle that knows nothing but its graph and what happened. Always:

* a job is made only when all that it depends on are completed, and not while the flow is suspended or over,
* a job is never made twice, unless somebody deleted it before it ended or asked for another try,
* once it has come to rest: every job that is due exists, the phase is the oracle's, and so is every entry's standing,
* a job that ended is remembered, whoever deletes it.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.examples import examples
from tests.support.flow_world import FINISHED, Crash, FlowWorld, entry

Json = dict[str, Any]
_MOST = 6


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[str]]:
    """Orders of up to six jobs, listed in any order."""
    names = [chr(ord("a") + number) for number in range(draw(st.integers(1, _MOST)))]
    edges = {
        name: draw(st.lists(st.sampled_from(names[:place]), unique=True, max_size=3)) if place else []
        for place, name in enumerate(names)
    }
    return {name: edges[name] for name in draw(st.permutations(names))}


class Oracle:
    """What the words of the documentation say, on a graph: `state` of each entry is "", Live, Completed or Broken."""

    def __init__(self, graph: dict[str, list[str]]) -> None:
        self.graph = graph
        self.state = dict.fromkeys(graph, "")
        self.phase = "Pending"
        self.suspended = False
        self.terminating = False

    def ready(self, name: str) -> bool:
        return all(self.state[target] == "Completed" for target in self.graph[name])

    def may_make(self, name: str) -> bool:
        going = self.phase in ("Pending", "Running") and not self.suspended
        return going and self.ready(name) and self.state[name] == ""

    def doomed(self, name: str) -> bool:
        """Not made, and behind a broken one."""
        if self.state[name]:
            return False
        return any(self.state[target] == "Broken" or self.doomed(target) for target in self.graph[name])

    def standing(self, name: str) -> str:
        if self.state[name]:
            return self.state[name]
        if self.doomed(name):
            return "UpstreamFailed"
        return "Skipped" if self.phase == "Failed" else "Waiting"

    def settle(self, *, begun: bool) -> None:
        """The phase that follows; `begun`: a job runs."""
        states = self.state.values()
        if self.phase in ("Pending", "Running"):
            if "Broken" in states:
                self.phase = "Failed"
            elif all(state == "Completed" for state in states):
                self.phase = "Succeed"
            elif begun or "Completed" in states:
                self.phase = "Running"
        if self.phase == "Terminating":
            self.phase = "Failed"


class JobFlowMachine(RuleBasedStateMachine):
    @initialize(graph=graphs(), policy=st.sampled_from(["", "retain", "delete"]), lingers=st.booleans())
    def begin(self, graph: dict[str, list[str]], policy: str, lingers: bool) -> None:
        self.world = FlowWorld(*(entry(name, *targets) for name, targets in graph.items()), jobRetainPolicy=policy)
        self.world.lingers = lingers
        self.oracle = Oracle(graph)
        self.policy = policy
        self.seen = 0
        self.rested = False
        self.deleted: set[str] = set()
        """Entries whose job somebody deleted before it ended, or that are tried again: they may be made once more."""

    # What happens

    @rule()
    def rest(self) -> None:
        """Look and obey until there is nothing to do; jobs that are being deleted go."""
        for _ in range(40):
            quiet = self._reconcile()
            gone = [name for name, job in self.world.jobs.items() if "deletionTimestamp" in job["metadata"]]
            for name in gone:
                self.world.vanish(name)
            if not self.world.obey() and quiet and not gone:
                break
        else:
            raise AssertionError("it doesn't come to rest")
        self._follow()
        self.rested = True

    @rule(writes=st.integers(0, 4))
    def reconcile_and_die(self, writes: int) -> None:
        """What was seen of jobs that went dies with the controller, so nothing goes unseen here."""
        if not self.world.departed:
            self._reconcile(writes=writes)
        self.rested = False

    @precondition(lambda self: self._live())
    @rule(data=st.data(), phase=st.sampled_from(["Running", "Restarting", "Completed", "Failed", "Terminated"]))
    def a_job_changes(self, data: st.DataObject, phase: str) -> None:
        name = data.draw(st.sampled_from(self._live()))
        if self.world.phase_of(f"f-{name}") not in ("Aborted", "Aborting"):
            self.world.job_is(f"f-{name}", phase)
            self._take_note(name)
        self.rested = False

    @precondition(lambda self: self.rested and self.world.jobs)
    @rule(data=st.data())
    def somebody_deletes_a_job(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(sorted(self.world.jobs)))
        name = job.removeprefix("f-")
        if self.oracle.state[name] == "Live":
            self.oracle.state[name] = ""
            self.deleted.add(name)
        self.world.vanish(job)
        self.rested = False

    @precondition(lambda self: self.rested)
    @rule(action=st.sampled_from(["AbortJob", "ResumeJob", "RestartJob", "TerminateJob", "SyncJob"]))
    def somebody_asks(self, action: str) -> None:
        """One at a time, so that the oracle knows in which phase it is read."""
        self.world.command(action)
        oracle = self.oracle
        going = oracle.phase in ("Pending", "Running")
        if action == "AbortJob" and going:
            oracle.suspended = True
        elif action == "ResumeJob" and going:
            oracle.suspended = False
        elif action == "TerminateJob" and oracle.phase in ("Pending", "Running", "Failed"):
            oracle.phase, oracle.suspended = "Terminating", False
        elif action == "RestartJob" and oracle.phase == "Failed":
            oracle.phase = "Pending"
            for name in [name for name, state in oracle.state.items() if state == "Broken"]:
                oracle.state[name] = ""
                self.deleted.add(name)
        self.rest()

    @rule(data=st.data())
    def a_template_changes(self, data: st.DataObject) -> None:
        self.world.template(data.draw(st.sampled_from(sorted(self.oracle.graph))), maxRetry=7)
        self.rested = False

    # How the oracle hears of it

    def _live(self) -> list[str]:
        return [name for name, state in self.oracle.state.items() if state == "Live" and f"f-{name}" in self.world.jobs]

    def _take_note(self, name: str) -> None:
        phase = self.world.phase_of(f"f-{name}")
        if phase in FINISHED:
            self.oracle.state[name] = "Completed" if phase == "Completed" else "Broken"

    def _reconcile(self, *, writes: int | None = None) -> bool:
        """Whether there was nothing to do."""
        running = any(self.world.phase_of(f"f-{name}") == "Running" for name in self._live())
        if self.oracle.phase in ("Pending", "Running"):
            self._foresee(running)
        try:
            return self.world.reconcile(writes=writes).nothing_to_do
        except Crash:
            return False
        finally:
            self._check_made()

    def _foresee(self, running: bool) -> None:
        """A look sees a failure before it makes anything."""
        if "Broken" in self.oracle.state.values():
            self.oracle.settle(begun=running)

    def _check_made(self) -> None:
        for job in self.world.made[self.seen :]:
            name = job.removeprefix("f-")
            assert self.oracle.may_make(name), f"{name} isn't due: {self.oracle.state}, {self.oracle.phase}"
            assert name in self.deleted or self.world.made.count(job) == 1, "made twice"
            self.deleted.discard(name)
            self.oracle.state[name] = "Live"
        self.seen = len(self.world.made)

    def _follow(self) -> None:
        """Jobs that were terminated at the flow's own wish have ended."""
        for name in self._live():
            self._take_note(name)
        running = any(self.world.phase_of(f"f-{name}") == "Running" for name in self._live())
        self.oracle.settle(begun=running or self.world.phase == "Running")

    # What holds at rest

    @invariant()
    def what_is_due_exists(self) -> None:
        if self.rested:
            assert not [name for name in self.oracle.graph if self.oracle.may_make(name)]

    @invariant()
    def the_phase_is_the_oracles(self) -> None:
        if self.rested:
            assert self.world.phase == self.oracle.phase

    @invariant()
    def each_entry_stands_as_the_oracle_says(self) -> None:
        if not self.rested:
            return
        status, oracle = self.world.status, self.oracle
        broken = [*status.get("failedJobs", ()), *status.get("terminatedJobs", ())]
        assert sorted(status.get("completedJobs", ())) == self._jobs("Completed")
        assert sorted(broken) == self._jobs("Broken")
        live = [job for key in ("pendingJobs", "runningJobs", "unKnowJobs") for job in status.get(key, ())]
        assert sorted(live) == self._jobs("Live")
        if oracle.phase == "Failed":
            for standing, words in (
                ("UpstreamFailed", "never made for what they depend on: "),
                ("Skipped", "skipped: "),
            ):
                names = [name for name in oracle.graph if oracle.standing(name) == standing]
                reported = self.world.message.partition(words)[2].partition(";")[0].split(", ")[: len(names)]
                assert reported == names, (standing, self.world.message)

    @invariant()
    def jobs_go_where_that_is_asked_for(self) -> None:
        if self.rested and self.oracle.phase == "Succeed" and self.policy == "delete":
            assert self.world.jobs == {}

    @invariant()
    def suspended_is_suspended(self) -> None:
        if self.rested and self.oracle.suspended and self.oracle.phase in ("Pending", "Running"):
            phases = {self.world.phase_of(job) for job in self.world.jobs}
            assert phases <= {"Aborted", *FINISHED}

    def _jobs(self, state: str) -> list[str]:
        return sorted(f"f-{name}" for name, found in self.oracle.state.items() if found == state)


JobFlowMachine.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=30)
TestJobFlowMachine = JobFlowMachine.TestCase
