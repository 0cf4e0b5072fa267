"""Placing a gang that has gangs inside: each of them whole or not at all, those that the gang needs first."""

from __future__ import annotations

from collections import deque

from vcbatch.scheduler.actions.attempt import Attempt, Sheet
from vcbatch.scheduler.blockers import no_node
from vcbatch.scheduler.model import Run
from vcbatch.scheduler.plugins.gang import PLACED, members_of_sub, whole_subs
from vcbatch.scheduler.sub_gangs import SubKey


class SubGangAttempt(Attempt):
    """Goes through the sub-gangs in the order of their first task. One that doesn't get its size is taken back, and the
    next one is tried: a gang that wants two of three partitions takes those that fit."""

    def work_off(self, sheet: Sheet) -> None:
        """Place sub-gangs from the sheet until the gang is ready. What is left on it is for another turn."""
        parts: dict[SubKey | None, Sheet] = {}
        for run in sheet:
            parts.setdefault(run.sub, deque()).append(run)
        sheet.clear()
        for key in self._needed_first(list(parts)):
            if key is None:
                super().work_off(parts[key])
            else:
                self._place_sub(key, parts[key])
            if self.session.ready(self.job):
                break
        for runs in parts.values():
            sheet.extend(runs)

    def _needed_first(self, keys: list[SubKey | None]) -> list[SubKey | None]:
        """Members of no sub-gang, and of each rule as many sub-gangs as the gang still needs; then the others."""
        job = self.job
        missing = [rule.least - whole_subs(job, position, PLACED) for position, rule in enumerate(job.rules)]
        first: list[SubKey | None] = []
        for key in keys:
            if key is None:
                first.append(key)
            elif missing[key[0]] > 0 and self._short_of(key) > 0:
                missing[key[0]] -= 1
                first.append(key)
        return [*first, *(key for key in keys if key not in first)]

    def _short_of(self, key: SubKey) -> int:
        return self.job.rules[key[0]].size - members_of_sub(self.job, key, PLACED)

    def _place_sub(self, key: SubKey, runs: Sheet) -> None:
        """Place what the sub-gang lacks of its size, or nothing; beyond its size, one task. Leaves the rest in `runs`;
        of a sub-gang that failed nothing is left, as it isn't tried again in this cycle."""
        mark = self.statement.mark()
        short = max(self._short_of(key), 1)
        left: Sheet = deque()
        while runs and short:
            run = runs.popleft()
            want = min(short, len(run.tasks))
            placed = self._take(run, want)
            short -= placed
            if placed == want and want < len(run.tasks):
                left.append(run.rest(placed))
        if short:
            self.statement.take_back(mark)
            runs.clear()
        else:
            runs.extendleft(reversed(left))

    def _take(self, run: Run, want: int) -> int:
        """Place the first `want` tasks of a run, or as many as go; how many."""
        session, job = self.session, self.job
        assert job.queue is not None  # noqa: S101 - eligible gangs have a queue
        if run.cls.unsupported:
            self.fail(no_node(session, run.tasks[0], unplaced=want, placed=self.placed()))
            return 0
        room = session.room(job.queue, run.cls.request)
        if room < want:
            self.fail(self.queue_limit(job.queue, run.tasks[0], want))
            return 0
        coupled = session.coupled(run.tasks)
        done = 0
        while done < want:
            placed = self.some(run, done, 1 if coupled else want - done, coupled=coupled)
            if not placed:
                self.fail(no_node(session, run.tasks[done], unplaced=want - done, placed=self.placed()))
                return done
            done += placed
        return done
