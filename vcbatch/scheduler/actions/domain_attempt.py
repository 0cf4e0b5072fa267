"""Placement of a gang with a network topology: in the lowest-tier domain that fits it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from vcbatch.scheduler.actions.attempt import Sheet
from vcbatch.scheduler.actions.search_attempt import attempt_of
from vcbatch.scheduler.actions.sub_gangs import SubGangAttempt
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.model.blocker import Blocker
from vcbatch.scheduler.model.domain import Purpose
from vcbatch.scheduler.model.objects import Job, Run
from vcbatch.scheduler.reasons.domain_blockers import inconsistent, no_domain
from vcbatch.scheduler.topology.domain_search import Candidate, DomainSearch

MOST_COMPARED: Final = 16
"""How many domains of one tier in which the gang fits are compared by their scores, where scores are known only once
sub-gangs are placed."""


class _Outcome(NamedTuple):
    """An attempt in one domain that gave the gang its minimum: the operations, the runs left, and the score; `ready` if
    no part of the gang waits for terminating pods."""

    ready: bool
    score: float
    done: Sequence[object]
    left: Sheet


class DomainAttempt:
    """Tries domains tier by tier, the lowest first, and within a tier the best first. Only domains with enough slots
    are tried, so that nearly always the first one fits.

    Within a tier a domain with enough free resources takes precedence over one where pods still have to end; then the
    score decides, then the name. The score of a domain is known before anything is placed, except where sub-gangs
    choose domains of their own: then the first few domains that fit are compared.
    """

    def __init__(self, session: Session, job: Job, statement: Statement) -> None:
        self._session = session
        self._job = job
        self._statement = statement
        self._compared = any(rule.topology is not None for rule in job.rules)
        self._blocker: Blocker | None = None
        self._limited = False

    def work_off(self, sheet: Sheet) -> None:
        """Place runs from the sheet until the gang is ready. Runs left on it are for the next time the gang is served;
        none are left if it isn't to be tried again in this cycle."""
        left = self._search(sheet) if sheet else deque[Run]()
        sheet.clear()
        if left is not None:
            sheet.extend(left)
        elif self._blocker is not None:
            self._session.blockers.setdefault(self._job.key, self._blocker)

    def _search(self, sheet: Sheet) -> Sheet | None:
        session, job = self._session, self._job
        search = session.shared(DomainSearch)
        misfit = search.misfit(job)
        if misfit is not None:
            self._blocker = inconsistent(job, misfit, task=sheet[0].tasks[0].name)
            return None
        groups = search.groups(job, Purpose.ALLOCATE)
        for group in groups:
            left = self._place(search.ranked(job, group), sheet)
            if left is not None or self._limited:
                return left
        if not groups:
            self._blocker = no_domain(session, job, placed=job.ready_count)
        return None

    def _place(self, candidates: Iterable[Candidate], sheet: Sheet) -> Sheet | None:
        """Place the gang in the best domain of one tier. Returns the runs left, None if no domain fits."""
        mark = self._statement.mark()
        found: list[_Outcome] = []
        for candidate in candidates:
            if found and not candidate.now:
                break
            outcome = self._try(candidate, sheet)
            if outcome is not None:
                if outcome.ready and not self._compared:
                    return outcome.left
                found.append(outcome)
            self._statement.take_back(mark)
            if self._limited or len(found) == MOST_COMPARED:
                break
        if not found or self._limited:
            return None
        best = max(found, key=lambda one: (one.ready, one.score))
        self._statement.replay(best.done)
        return best.left

    def _try(self, candidate: Candidate, sheet: Sheet) -> _Outcome | None:
        """Place the gang in one domain and return the outcome, with the placements still applied; None if it doesn't
        fit."""
        session, job, statement = self._session, self._job, self._statement
        left, mark = deque(sheet), statement.mark()
        attempt = attempt_of(session, job, statement, domain=candidate.domain)
        attempt.work_off(left)
        ready = session.ready(job)
        if statement.mark() > mark and (ready or session.pipelined(job)):
            score = attempt.score if isinstance(attempt, SubGangAttempt) and self._compared else candidate.score
            return _Outcome(ready, score, statement.recorded()[mark:], left)
        self._limited = attempt.limited
        self._blocker = self._blocker or attempt.blocker
        return None
