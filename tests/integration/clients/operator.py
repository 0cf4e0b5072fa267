"""An operator as its users write it with kopf: nothing in it knows which server it talks to.

Run as a program: `kopf run --standalone -n NAMESPACE operator.py`.
"""

from __future__ import annotations

from typing import Any

import kopf

JOBS = ("batch.volcano.sh", "v1alpha1", "jobs")


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.level = 20
    settings.persistence.finalizer = "example.com/operator"


@kopf.index("configmaps", labels={"role": "input"})
def inputs(name: str, body: kopf.Body, **_: Any) -> dict[str, str]:
    return {name: (body.get("data") or {}).get("value", "")}


@kopf.on.create("configmaps", labels={"role": "target"})
def created(name: str, inputs: kopf.Index, patch: kopf.Patch, body: kopf.Body, **_: Any) -> None:
    values = [value for values in inputs.values() for value in values]
    patch.meta.annotations["example.com/created"] = ",".join(sorted(values))
    kopf.event(body, type="Normal", reason="Seen", message=f"{name} was seen")


@kopf.on.update("configmaps", labels={"role": "target"}, field="data")
def updated(old: Any, new: Any, patch: kopf.Patch, **_: Any) -> None:
    before, after = ((data or {}).get("value", "") for data in (old, new))
    patch.meta.annotations["example.com/updated"] = f"{before}->{after}"


@kopf.on.resume("configmaps", labels={"role": "target"})
def resumed(patch: kopf.Patch, **_: Any) -> None:
    patch.meta.annotations["example.com/resumed"] = "yes"


@kopf.on.delete("configmaps", labels={"role": "target"})
def deleted(retry: int, **_: Any) -> None:
    if retry == 0:
        raise kopf.TemporaryError("not yet", delay=0.1)


@kopf.timer("configmaps", labels={"role": "target"}, interval=0.2, initial_delay=0.1)
def ticked(annotations: kopf.Annotations, patch: kopf.Patch, **_: Any) -> None:
    if "example.com/ticked" not in annotations:
        patch.meta.annotations["example.com/ticked"] = "yes"


@kopf.on.event("configmaps", labels={"role": "target"})
def noticed(event: kopf.RawEvent, logger: kopf.Logger, **_: Any) -> None:
    logger.debug("noticed %s", event["type"])


@kopf.on.create(*JOBS)
def job_created(body: kopf.Body, namespace: str, patch: kopf.Patch, **_: Any) -> dict[str, str]:
    patch.meta.labels["example.com/adopted"] = "yes"
    return {"seen": body["metadata"]["uid"]}


@kopf.on.delete(*JOBS)
def job_deleted(**_: Any) -> None:
    pass
