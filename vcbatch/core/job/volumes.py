"""`spec.volumes`: the claims of a job, both those that it creates and existing ones, and the pods that mount them.

A claim that a job creates lives as long as the job, through every restart, since checkpoints are on it. So it is
created once. `status.controlledResources` records the claims that were observed; one that is missing afterwards was
deleted together with its data, and an empty one in its place would be mistaken for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vcbatch.api import names
from vcbatch.api.job import Job
from vcbatch.api.model import Json, owner_of
from vcbatch.api.resources import JOBS, PERSISTENTVOLUMECLAIMS
from vcbatch.api.storage import Claim, ClaimPhase
from vcbatch.core.machine import Ensure, Mark, ref_of


@dataclass(frozen=True, slots=True, kw_only=True)
class JobVolume:
    """One entry of `spec.volumes`. `claim` is the name of its claim; `template` the spec of the claim that the job
    creates, None where the claim belongs to the user."""

    position: int
    mount_path: str
    claim: str
    template: Json | None


def volumes_of(job: Job) -> list[JobVolume]:
    """The entries of `spec.volumes`, with generated names for claims without one.

    A claim that the spec describes and that has a name of the user's is the user's (Volcano creates none then).
    """
    found: list[JobVolume] = []
    for position, volume in enumerate(job.spec.volumes):
        own = names.claim_name(job.name, job.uid, position)
        claim = volume.volume_claim_name or own
        template = volume.volume_claim if claim == own else None
        found.append(JobVolume(position=position, mount_path=volume.mount_path, claim=claim, template=template))
    return found


def wanted_claims(job: Job) -> list[str]:
    """The claims that the `JobView` of this job must contain where they exist, in the job's namespace."""
    return sorted({volume.claim for volume in volumes_of(job)})


def claims_to_check(job: Job) -> list[str]:
    """The claims that must exist: the user's, and those that were observed before. That one of these is missing has to
    be confirmed by a read from the server, since caches are late."""
    recorded = job.status.controlled_resources
    return sorted({v.claim for v in volumes_of(job) if v.template is None or _key(v.claim) in recorded})


def name_claims(job: Job) -> Mark | None:
    """Write the generated names of claims into the spec, so that all clients find them; None where none is missing."""
    if all(volume.volume_claim_name for volume in job.spec.volumes):
        return None
    named = [
        {**given.dump(), "volumeClaimName": volume.claim}
        for given, volume in zip(job.spec.volumes, volumes_of(job), strict=True)
    ]
    return Mark(ref=ref_of(JOBS, job), patch={"spec": {"volumes": named}}, version=job.metadata.resource_version)


def ensures(job: Job, claims: Mapping[str, Claim]) -> Iterator[Ensure]:
    """Create the job's own claims that were never observed."""
    for volume in volumes_of(job):
        if volume.template is not None and volume.claim not in claims and not _recorded(job, volume.claim):
            body: Json = {
                "apiVersion": PERSISTENTVOLUMECLAIMS.api_version,
                "kind": PERSISTENTVOLUMECLAIMS.kind,
                "metadata": {
                    "name": volume.claim,
                    "namespace": job.namespace,
                    "ownerReferences": [owner_of(job, JOBS)],
                },
                "spec": volume.template,
            }
            yield Ensure(resource=PERSISTENTVOLUMECLAIMS, body=body)


def trouble(job: Job, claims: Mapping[str, Claim]) -> str:
    """Why pods with these claims couldn't start or would mount the wrong data; empty where they can start. A claim that
    has yet to be created is no error."""
    found = {volume.claim: _error(job, volume, claims.get(volume.claim)) for volume in volumes_of(job)}
    return "; ".join(error for error in found.values() if error)


def controlled_resources(job: Job, claims: Mapping[str, Claim]) -> dict[str, str]:
    """The claims' part of `status.controlledResources`: those that were observed, whether or not they still exist."""
    return {
        _key(volume.claim): volume.claim
        for volume in volumes_of(job)
        if _recorded(job, volume.claim) or (volume.claim in claims and not _foreign(job, volume, claims[volume.claim]))
    }


def mount(job: Job, pod_spec: Json) -> None:
    """Add the job's volumes to the spec of a pod that is about to be created, in place except for the containers, which
    are copied. A claim that is listed twice is mounted at both paths; init containers get none, as in Volcano."""
    volumes = volumes_of(job)
    if not volumes:
        return
    sources = {volume.claim: names.claim_volume_name(job.name, job.uid, volume.claim) for volume in volumes}
    added = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for claim, name in sources.items()]
    mounts = [{"name": sources[volume.claim], "mountPath": volume.mount_path} for volume in volumes]
    pod_spec["volumes"] = [*(pod_spec.get("volumes") or ()), *added]
    pod_spec["containers"] = [
        {**container, "volumeMounts": [*(container.get("volumeMounts") or ()), *mounts]}
        for container in pod_spec.get("containers") or ()
    ]


def _error(job: Job, volume: JobVolume, claim: Claim | None) -> str:
    named = f"PersistentVolumeClaim {volume.claim}, of spec.volumes[{volume.position}],"
    if claim is None:
        if volume.template is None:
            return f"{named} doesn't exist"
        if _recorded(job, volume.claim):
            return f"{named} was made for this job and is gone with what it held"
        return ""
    if _foreign(job, volume, claim):
        return f"{named} can't be made: the name is taken by a claim of somebody else"
    if claim.metadata.deletion_timestamp:
        return f"{named} is being deleted"
    if claim.status.phase == ClaimPhase.LOST:
        return f"{named} has lost its volume {claim.spec.volume_name or ''}".rstrip()
    return ""


def _foreign(job: Job, volume: JobVolume, claim: Claim) -> bool:
    """Whether the claim has the name of one that the job creates, but another owner or none."""
    owner = claim.metadata.controller_owner()
    return volume.template is not None and (owner is None or owner.uid != job.uid)


def _recorded(job: Job, claim: str) -> bool:
    return _key(claim) in job.status.controlled_resources


def _key(claim: str) -> str:
    return names.CLAIM_RESOURCE_PREFIX + claim
