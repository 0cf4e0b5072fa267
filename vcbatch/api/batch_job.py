"""Kubernetes' own Job (`batch/v1`), as its controller reads it."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from vcbatch.api import names
from vcbatch.api.model import Json, Model, Object

LARGEST_INT32 = 2**31 - 1
DEFAULT_BACKOFF_LIMIT = 6


class CompletionMode(StrEnum):
    NON_INDEXED = "NonIndexed"
    """Complete when as many pods have succeeded as `completions` says."""
    INDEXED = "Indexed"
    """Complete when a pod has succeeded for each index from 0 on."""


class ReplacementPolicy(StrEnum):
    TERMINATING_OR_FAILED = "TerminatingOrFailed"
    """A pod that is being deleted counts as failed, and is replaced at once."""
    FAILED = "Failed"
    """A pod is replaced when its containers have ended."""


class FailureAction(StrEnum):
    """The action of a rule of the pod failure policy on a matching pod."""

    FAIL_JOB = "FailJob"
    FAIL_INDEX = "FailIndex"
    IGNORE = "Ignore"
    COUNT = "Count"


class ConditionType(StrEnum):
    SUSPENDED = "Suspended"
    FAILURE_TARGET = "FailureTarget"
    """It has failed, and its pods are being ended."""
    SUCCESS_CRITERIA_MET = "SuccessCriteriaMet"
    """It has succeeded, and its running pods are being ended."""
    FAILED = "Failed"
    COMPLETE = "Complete"


class OnExitCodes(Model):
    container_name: str | None = None
    operator: str = ""
    values: list[int] = Field(default_factory=list[int])


class OnPodCondition(Model):
    type: str = ""
    status: str = ""


class FailureRule(Model):
    action: str = ""
    on_exit_codes: OnExitCodes | None = None
    on_pod_conditions: list[OnPodCondition] = Field(default_factory=list[OnPodCondition])


class PodFailurePolicy(Model):
    rules: list[FailureRule] = Field(default_factory=list[FailureRule])


class SuccessRule(Model):
    succeeded_indexes: str | None = None
    succeeded_count: int | None = None


class SuccessPolicy(Model):
    rules: list[SuccessRule] = Field(default_factory=list[SuccessRule])


class BatchJobSpec(Model):
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str = ""
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    pod_replacement_policy: str = ""
    managed_by: str | None = None
    selector: Json | None = None
    template: Json = Field(default_factory=Json)


class Condition(Model):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class UncountedPods(Model):
    """UIDs of ended pods that are yet to be added to the counts, after their finalizers are removed."""

    succeeded: list[str] = Field(default_factory=list[str])
    failed: list[str] = Field(default_factory=list[str])


class BatchJobStatus(Model):
    conditions: list[Condition] = Field(default_factory=list[Condition])
    start_time: str | None = None
    completion_time: str | None = None
    active: int = 0
    ready: int | None = None
    terminating: int | None = None
    succeeded: int = 0
    failed: int = 0
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: UncountedPods = Field(default_factory=UncountedPods)

    def true_condition(self, kind: ConditionType) -> Condition | None:
        """The condition of that type, where its status is True; None otherwise."""
        return next((each for each in self.conditions if each.type == kind and each.status == "True"), None)

    @property
    def end(self) -> Condition | None:
        """The condition that says that the job has ended; None while it hasn't."""
        return self.true_condition(ConditionType.COMPLETE) or self.true_condition(ConditionType.FAILED)


class BatchJob(Object):
    spec: BatchJobSpec = Field(default_factory=BatchJobSpec)
    status: BatchJobStatus = Field(default_factory=BatchJobStatus)

    @property
    def indexed(self) -> bool:
        return self.spec.completion_mode == CompletionMode.INDEXED

    @property
    def indices(self) -> int:
        """The number of indices."""
        return (self.spec.completions or 0) if self.indexed else 0

    @property
    def counts_per_index(self) -> bool:
        """Whether each index has its own limit of failures."""
        return self.indexed and self.spec.backoff_limit_per_index is not None

    @property
    def parallelism(self) -> int:
        return 1 if self.spec.parallelism is None else self.spec.parallelism

    @property
    def backoff_limit(self) -> int:
        limit = self.spec.backoff_limit
        if limit is not None:
            return limit
        return LARGEST_INT32 if self.counts_per_index else DEFAULT_BACKOFF_LIMIT

    @property
    def suspended(self) -> bool:
        return bool(self.spec.suspend)

    @property
    def replaces_ended_only(self) -> bool:
        """Whether a pod that is being deleted is replaced only after it has ended."""
        return self.spec.pod_replacement_policy == ReplacementPolicy.FAILED or self.spec.pod_failure_policy is not None

    @property
    def managed_elsewhere(self) -> bool:
        """Whether another controller than Kubernetes' own manages it."""
        return self.spec.managed_by not in (None, names.KUBERNETES_JOB_CONTROLLER)
