"""Placement of a gang with sub-gangs: each of them as a whole or not at all, those that the gang needs first."""

from __future__ import annotations

from collections import deque

from vcbatch.scheduler.actions.attempt import Attempt, Sheet
from vcbatch.scheduler.model.domain import Purpose
from vcbatch.scheduler.model.gang_counts import PLACED, members_of_sub, whole_subs
from vcbatch.scheduler.model.objects import Run
from vcbatch.scheduler.model.sub_gangs import SubKey
from vcbatch.scheduler.reasons.domain_blockers import no_domain
from vcbatch.scheduler.topology.domain_search import DomainSearch


class SubGangAttempt(Attempt):
    """Places the sub-gangs in the order of their first task, those that the gang needs first, and repeats with those
    that have tasks left while the gang isn't ready. A sub-gang that doesn't get its size is rolled back, and the next
    one is tried: a gang that needs two of three partitions takes those that fit.

    A sub-gang with a network topology of its own is placed in the lowest-tier domain that fits it, among those of one
    tier in the one with the highest score; `score` is the sum of these scores.
    """

    score = 0.0

    def work_off(self, sheet: Sheet) -> None:
        """Place sub-gangs from the sheet until the gang is ready. Runs left on it are for the next time the gang is
        served."""
        parts: dict[SubKey | None, Sheet] = {}
        for run in sheet:
            parts.setdefault(run.sub, deque()).append(run)
        sheet.clear()
        keys = deque(self._needed_first(list(parts)))
        while keys:
            key = keys.popleft()
            if key is None:
                super().work_off(parts[key])
            else:
                self._place_sub(key, parts[key])
                if parts[key]:
                    keys.append(key)
            if self.session.ready(self.job):
                break
        for runs in parts.values():
            sheet.extend(runs)

    def _needed_first(self, keys: list[SubKey | None]) -> list[SubKey | None]:
        """The tasks of no sub-gang, and of each rule as many sub-gangs as the gang still needs; then the others."""
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
        """Place what the sub-gang lacks of its size, or nothing; beyond its size, one task. The rest stays in `runs`;
        if the sub-gang failed, `runs` is emptied, because it isn't tried again in this cycle."""
        if self.job.rules[key[0]].topology is None:
            if not self._place_here(key, runs):
                runs.clear()
            return
        search, whole = self.session.shared(DomainSearch), self.domain
        groups = search.groups(self.job, Purpose.ALLOCATE, sub=key, within=whole)
        for group in groups:
            for candidate in search.ranked(self.job, group, sub=key):
                self.domain = candidate.domain
                placed = self._place_here(key, runs)
                self.domain = whole
                if placed:
                    self.score += candidate.score
                    return
        if not groups:
            self.fail(no_domain(self.session, self.job, sub=key, within=whole, placed=self.placed()))
        runs.clear()

    def _place_here(self, key: SubKey, runs: Sheet) -> bool:
        """Place the sub-gang in the present domain; False, with nothing placed, if it doesn't get its size there."""
        mark = self.statement.mark()
        short = max(self._short_of(key), 1)
        todo = deque(runs)
        left: Sheet = deque()
        while todo and short:
            run = todo.popleft()
            want = min(short, len(run.tasks))
            placed = self._take(run, want)
            short -= placed
            if placed == want and want < len(run.tasks):
                left.append(run.rest(placed))
        if short:
            self.statement.take_back(mark)
            return False
        runs.clear()
        runs.extend([*left, *todo])
        return True

    def _take(self, run: Run, want: int) -> int:
        """Place the first `want` tasks of a run, or as many of them as fit; returns how many."""
        session, job = self.session, self.job
        assert job.queue is not None  # noqa: S101 - eligible gangs have a queue
        if run.cls.unsupported:
            self.fail(self.no_node(run.tasks[0], unplaced=want))
            return 0
        room = session.room_of(job, run.cls.request)
        if room < want:
            self.fail(self.queue_limit(job.queue, run.tasks[0], want), by_queue=True)
            return 0
        coupled = session.coupled(run.tasks)
        done = 0
        while done < want:
            placed = self.some(run, done, 1 if coupled else want - done, coupled=coupled)
            if not placed:
                self.fail(self.no_node(run.tasks[done], unplaced=want - done))
                return done
            done += placed
        return done
