"""The ordered commands of a migration, with the names of the cluster's objects: pure decisions."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Final

from vcbatch.api.name_rules import dns_label
from vcbatch.api.names import DEFAULT_SCHEDULER, SCHEDULER_LEASE
from vcbatch.api.resources import QUEUES
from vcbatch.cli.inventory.model import Inventory, Maker, Owner, PolicyEntry, Program, Role, Webhook
from vcbatch.cli.inventory.programs import MANAGED_BY, RELEASE_NAME, RELEASE_NAMESPACE, RESOURCE_POLICY
from vcbatch.cli.migrate.check import CORE, IN_FLIGHT, owners, scheduler_names

QUEUE_MANAGER: Final = "queue-controller (Apply)"
"""The field manager with which Volcano's queue controller writes `status.state`; where another one owns the field, its
apply fails."""
RELEASE: Final = "vcbatch"
_STOPPED: Final = (Role.SCHEDULER, Role.AGENT_SCHEDULER, Role.CONTROLLERS, Role.HYPERNODES, Role.ADMISSION)
_BACKUP: Final = "volcano-objects.yaml"
_CRDS: Final = "volcano-crds.yaml"
_WEBHOOKS: Final = "volcano-webhooks.yaml"
_POLICIES: Final = "volcano-admission-policies.yaml"
_BEFORE: Final = "pods-before.txt"
_AFTER: Final = "pods-after.txt"
_LABEL: Final = "vcbatch.dev/scheduler"
"""Label of nodes that belong to one scheduler, where two share a cluster."""
_EPHEMERAL: Final = ("commands.bus.volcano.sh",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: title, rationale, commands, and the check that it is done."""

    title: str
    why: str
    commands: Sequence[str] = ()
    verify: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """How vcbatch is installed: with `vcbatch install` or Helm, and the namespace."""

    helm: bool = False
    namespace: str = "volcano-system"
    chart: str = "helm/vcbatch"


def forward(inventory: Inventory, request: PlanRequest) -> list[Step]:
    """The complete migration from Volcano to vcbatch."""
    return [
        *_saved(inventory),
        *_policies(inventory),
        *_paused(inventory),
        *_in_flight(inventory),
        *_admission_stopped(inventory),
        *_stopped(inventory, (Role.SCHEDULER, Role.AGENT_SCHEDULER), "scheduler", after="admission"),
        *_stopped(inventory, (Role.CONTROLLERS, Role.HYPERNODES), "controllers", after="the scheduler"),
        *_handed_over(inventory, request),
        *_installed(inventory, request),
        *_verified(inventory),
        *_cleaned(inventory, request),
    ]


# -- before anything is stopped ---------------------------------------------------------------------------------------


def _saved(inventory: Inventory) -> Iterator[Step]:
    known = [one.name for one in inventory.definitions if one.name not in _EPHEMERAL]
    commands = ["umask 077"]
    if known:
        commands.append(f"kubectl get {','.join(known)} --all-namespaces -o yaml > {_BACKUP}")
        commands.append(f"kubectl get crd {' '.join(known)} -o yaml > {_CRDS}")
    configurations = _configurations(inventory, volcano=True)
    if configurations:
        named = " ".join(f"{kind.lower()}/{name}" for kind, name in configurations)
        commands.append(f"kubectl get {named} -o yaml > {_WEBHOOKS}")
    policies = _admission_policies(inventory, Maker.VOLCANO)
    if policies:
        commands.append(f"kubectl get {' '.join(policies)} -o yaml > {_POLICIES}")
    commands += (
        f"kubectl get secret -n {owner.namespace} -l owner=helm,name={owner.name} -o yaml > {_release_file(owner)}"
        for owner in _releases(inventory)
    )
    commands.append(_pods(inventory, _BEFORE))
    yield Step(
        title="Back up the current state",
        why="Rollback requires Volcano's webhook configurations and Helm's release record. The list of pods is used to "
        "verify that none was replaced. Helm's record may contain secret values.",
        commands=tuple(commands),
    )


def _pods(inventory: Inventory, file: str) -> str:
    names = scheduler_names(inventory) or sorted(inventory.scheduler_names) or [DEFAULT_SCHEDULER]
    columns = "NAMESPACE:.metadata.namespace,NAME:.metadata.name,UID:.metadata.uid"
    columns += ",RESTARTS:.status.containerStatuses[*].restartCount"
    each = " && ".join(
        f"kubectl get pods -A --no-headers --field-selector {quote(f'spec.schedulerName={name}')} "
        f"-o custom-columns={columns!r}"
        for name in names
    )
    return f"{{ {each}; }} | sort > {file}"


def _policies(inventory: Inventory) -> Iterator[Step]:
    for entry in _volcano_policies(inventory):
        path = entry.key.replace(".", "\\.")
        file = policy_file(entry)
        value = quote(f"{{.data.{path}}}")
        commands = [
            f"kubectl get configmap -n {entry.namespace} {quote(entry.name)} -o jsonpath={value} > {file}",
            f"vcbatch config check {file}",
        ]
        fixes = f" Fix its {len(entry.errors)} errors in the file." if entry.errors else ""
        yield Step(
            title=f"Convert the scheduler configuration {entry.namespace}/{entry.name}",
            why="vcbatch reads Volcano's scheduler configuration, but rejects what Volcano only logs: unknown plugins, "
            f"arguments and switches.{fixes}",
            commands=tuple(commands),
            verify=f"the last command prints `{file}: OK`",
        )


def policy_file(entry: PolicyEntry) -> str:
    """The name of the file in which the plan saves a scheduler configuration."""
    return quote(f"{entry.name.replace('/', '-')}.conf")


def _volcano_policies(inventory: Inventory) -> list[PolicyEntry]:
    return [one for one in inventory.policies if one.maker is Maker.VOLCANO]


def _paused(inventory: Inventory) -> Iterator[Step]:
    for owner in owners(inventory):
        if owner.tool == "Argo CD":
            patch = quote('{"spec":{"syncPolicy":{"automated":null}}}')
            commands = [f"kubectl patch applications.argoproj.io -n argocd {owner.name} --type=merge -p {patch}"]
        elif owner.tool == "Flux":
            where = f" -n {owner.namespace}" if owner.namespace else ""
            commands = [
                f"flux suspend helmrelease {owner.name}{where} || flux suspend kustomization {owner.name}{where}"
            ]
        else:
            continue
        yield Step(
            title=f"Suspend {owner}",
            why="It would restart Volcano's components and restore its webhook configurations.",
            commands=tuple(commands),
        )


def _in_flight(inventory: Inventory) -> Iterator[Step]:
    count = sum(inventory.jobs.counts.get(phase, 0) for phase in IN_FLIGHT)
    if count:
        yield Step(
            title="Wait for jobs in transition (optional)",
            why=f"{count} jobs are restarting or terminating. vcbatch completes these transitions, but the result is "
            "easier to verify without them.",
            commands=("kubectl get jobs.batch.volcano.sh -A | grep -E 'Restarting|Aborting|Completing|Terminating'",),
        )


# -- stopping Volcano -------------------------------------------------------------------------------------------------


def _configurations(inventory: Inventory, *, volcano: bool) -> list[tuple[str, str]]:
    chosen = [one for one in inventory.webhooks if _is(one, volcano=volcano)]
    return list(dict.fromkeys((one.kind, one.configuration) for one in chosen))


def _is(webhook: Webhook, *, volcano: bool) -> bool:
    """Whether the webhook is Volcano's (or vcbatch's). One of unknown origin has a name of Volcano's and counts as
    Volcano's."""
    return (webhook.maker is not Maker.VCBATCH) if volcano else (webhook.maker is Maker.VCBATCH)


def _admission_policies(inventory: Inventory, maker: Maker) -> list[str]:
    found = [one for one in inventory.admission_policies if one.maker is maker]
    # Bindings first: a policy without a binding validates nothing.
    found.sort(key=lambda one: not one.kind.endswith("Binding"))
    return [f"{one.kind.lower()}/{one.name}" for one in found]


def _deleted(configurations: Sequence[tuple[str, str]]) -> list[str]:
    by_kind: defaultdict[str, list[str]] = defaultdict(list)
    for kind, name in configurations:
        by_kind[kind].append(name)
    return [f"kubectl delete {kind.lower()} {' '.join(names)}" for kind, names in by_kind.items()]


def _admission_stopped(inventory: Inventory) -> Iterator[Step]:
    commands = _deleted(_configurations(inventory, volcano=True))
    if policies := _admission_policies(inventory, Maker.VOLCANO):
        commands.append(f"kubectl delete {' '.join(policies)}")
    commands += _scaled_down(inventory.programs_of(Maker.VOLCANO, Role.ADMISSION))
    if commands:
        yield Step(
            title="Stop Volcano's admission, configurations first",
            why="With failurePolicy Fail, a configuration without its webhook rejects all new pods and jobs. Until "
            "vcbatch's are installed, there are no defaults and no validation: pause submissions, or set queue, "
            "schedulerName and minAvailable in all jobs.",
            commands=tuple(commands),
            verify="kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations | grep -i volcano prints "
            "nothing",
        )


def _stopped(inventory: Inventory, roles: Sequence[Role], what: str, *, after: str) -> Iterator[Step]:
    programs = [one for one in inventory.programs_of(Maker.VOLCANO, *roles) if one.role is not Role.AGENT_SCHEDULER]
    commands = _scaled_down(programs)
    if not commands:
        return
    unelected = any(not one.leader_elect for one in programs)
    lease = (
        " They have no Lease (--leader-elect=false): check that their pods are deleted."
        if (unelected)
        else " Their Leases have different names and can stay."
    )
    yield Step(
        title=f"Stop Volcano's {what}, after {after}",
        why="Running pods aren't changed; new work is paused." + lease,
        commands=tuple(commands),
    )


def _scaled_down(programs: Sequence[Program]) -> list[str]:
    commands: list[str] = []
    for one in programs:
        if not one.running:
            continue
        commands.append(f"kubectl scale -n {one.namespace} {one.kind.lower()} {one.name} --replicas=0")
        if one.selector:
            labels = quote(",".join(f"{key}={value}" for key, value in sorted(one.selector.items())))
            commands.append(f"kubectl wait -n {one.namespace} pods -l {labels} --for=delete --timeout=120s")
    return commands


# -- handing over -----------------------------------------------------------------------------------------------------


def _releases(inventory: Inventory) -> list[Owner]:
    return [one for one in owners(inventory) if one.tool == "Helm" and not dns_label(one.namespace)]


def _release_file(owner: Owner) -> str:
    return f"{owner.name}-release.yaml"


def _handed_over(inventory: Inventory, request: PlanRequest) -> Iterator[Step]:
    for owner in _releases(inventory):
        yield Step(
            title=f"Remove Helm's release record of {owner.name}",
            why="`helm uninstall` uses the stored manifest, without the keep policy of CRDs: it would delete all jobs. "
            "Without the record, this can't happen by mistake. Running components aren't changed.",
            commands=(f"kubectl delete secret -n {owner.namespace} -l owner=helm,name={owner.name}",),
            verify=f"helm list -n {owner.namespace} doesn't show {owner.name}; {_release_file(owner)} isn't empty",
        )
    names = " ".join(one.name for one in inventory.definitions if one.known)
    if names:
        yield Step(
            title="Transfer the CRDs",
            why="They are kept with all their objects, and updated by the installation. "
            + (
                "Helm adopts objects with its release name, and keeps those with the keep policy."
                if request.helm
                else "No Helm release may own them any more."
            ),
            commands=tuple(_claimed(names, request)),
        )
    shared = _shared(inventory, request)
    if shared:
        yield Step(
            title="Free shared names",
            why="Service and Secret of admission have the same names. The Service has no endpoints any more. The "
            "Secret is reused with its certificate, which vcbatch serves for ten more minutes.",
            commands=tuple(shared),
        )


def _claimed(names: str, request: PlanRequest) -> list[str]:
    if request.helm:
        release = f"{RELEASE_NAME}={RELEASE} {RELEASE_NAMESPACE}={request.namespace}"
        return [
            f"kubectl annotate crd {names} --overwrite {RESOURCE_POLICY}=keep {release}",
            f"kubectl label crd {names} --overwrite {MANAGED_BY}=Helm",
        ]
    return [
        f"kubectl annotate crd {names} {RELEASE_NAME}- {RELEASE_NAMESPACE}- {RESOURCE_POLICY}=keep --overwrite",
        f"kubectl label crd {names} {MANAGED_BY}-",
    ]


def _shared(inventory: Inventory, request: PlanRequest) -> list[str]:
    admission = inventory.programs_of(Maker.VOLCANO, Role.ADMISSION)
    if not any(one.namespace == request.namespace for one in admission):
        return []
    commands = [f"kubectl delete service -n {request.namespace} volcano-admission-service --ignore-not-found"]
    secret = f"secret -n {request.namespace} volcano-admission-secret"
    if request.helm:
        commands += [
            f"kubectl annotate {secret} --overwrite {RELEASE_NAME}={RELEASE} {RELEASE_NAMESPACE}={request.namespace}",
            f"kubectl label {secret} --overwrite {MANAGED_BY}=Helm",
        ]
    return commands


def _installed(inventory: Inventory, request: PlanRequest) -> Iterator[Step]:
    policies = _volcano_policies(inventory)
    names = scheduler_names(inventory) or [DEFAULT_SCHEDULER]
    yield Step(
        title="Install vcbatch",
        why="The controllers continue from the existing status, the scheduler counts running pods as allocated, and "
        "admission is registered last, when it is ready.",
        commands=tuple(install_commands(request, policies=policies, names=names)),
        verify="all Deployments are available",
    )


def install_commands(request: PlanRequest, *, policies: Sequence[PolicyEntry], names: Sequence[str]) -> list[str]:
    """The commands that install vcbatch as the successor of Volcano."""
    other = [name for name in names if name != DEFAULT_SCHEDULER]
    if request.helm:
        words = [f"helm install {RELEASE} {request.chart} -n {request.namespace} --create-namespace --wait"]
        for number, name in enumerate(names):
            words.append("--set " + quote(f"schedulers[{number}].name={name}"))
            if policies:
                words.append(f"--set-file 'schedulers[{number}].policy'={policy_file(policies[0])}")
        return [" ".join(words)]
    words = [f"vcbatch install --namespace {request.namespace} --force-conflicts"]
    if policies:
        words.append(f"--scheduler-conf {policy_file(policies[0])}")
    words += [f"--scheduler-name {quote(name)}" for name in names if other]
    return [" ".join(words)]


# -- afterwards -------------------------------------------------------------------------------------------------------


def _verified(inventory: Inventory) -> Iterator[Step]:
    yield Step(
        title="Verify",
        why="All running pods must be unchanged, and jobs, queues and PodGroups reconciled.",
        commands=(
            "vcbatch doctor",
            _pods(inventory, _AFTER),
            f"comm -23 {_BEFORE} {_AFTER}",
            "kubectl get jobs.batch.volcano.sh -A",
        ),
        verify="the third command prints only pods that finished in the meantime",
    )


def _cleaned(inventory: Inventory, request: PlanRequest) -> Iterator[Step]:
    commands: list[str] = []
    by_namespace: defaultdict[str, list[str]] = defaultdict(list)
    for one in inventory.programs_of(Maker.VOLCANO, *_STOPPED):
        if one.role is not Role.AGENT_SCHEDULER:
            by_namespace[one.namespace].append(f"{one.kind.lower()}/{one.name}")
    for namespace, programs in by_namespace.items():
        commands.append(f"kubectl delete -n {namespace} {' '.join(programs)}")
    leases = [one for one in inventory.leases if one.maker is Maker.VOLCANO]
    commands += [f"kubectl delete lease -n {one.namespace} {one.name}" for one in leases]
    for owner in _releases(inventory):
        parts = ("scheduler", "controllers", "admission")
        accounts = " ".join(f"{owner.name}-{part}" for part in parts)
        bindings = " ".join(f"{owner.name}-{part}-role" for part in parts)
        maps = " ".join(f"{owner.name}-{part}-configmap" for part in ("scheduler", "controller", "admission"))
        services = " ".join(f"{owner.name}-{part}-service" for part in parts[:2])
        commands += [
            f"kubectl delete clusterrolebinding {bindings} --ignore-not-found",
            f"kubectl delete clusterrole {accounts} --ignore-not-found",
            f"kubectl delete serviceaccount -n {owner.namespace} {accounts} --ignore-not-found",
            f"kubectl delete configmap -n {owner.namespace} {maps} --ignore-not-found",
            f"kubectl delete service -n {owner.namespace} {services} --ignore-not-found",
        ]
    if commands:
        yield Step(
            title="After some days: remove the remaining Volcano objects",
            why="Until then rollback is quick: `vcbatch migrate plan --back`. Then remove the ServiceAccounts, which "
            "have cluster-wide permissions.",
            commands=tuple(commands),
        )


# -- the way back -----------------------------------------------------------------------------------------------------


def back(inventory: Inventory, request: PlanRequest) -> list[Step]:
    """The steps from vcbatch back to a Volcano that is stopped or was removed."""
    return [
        Step(
            title="Back up the current state",
            why="The list of pods is used to verify that none was replaced.",
            commands=("umask 077", _pods(inventory, _BEFORE)),
        ),
        *_ours_stopped(inventory, request),
        *_queues_freed(inventory),
        *_crds_back(inventory, request),
        *_volcano_started(inventory),
        Step(
            title="Verify",
            why="All running pods must be unchanged. Volcano's first status update removes `status.ledger` of jobs "
            "(lost pods and eviction budget), which Volcano doesn't use.",
            commands=(_pods(inventory, _AFTER), f"comm -23 {_BEFORE} {_AFTER}", "kubectl get jobs.batch.volcano.sh -A"),
            verify="the second command prints only pods that finished in the meantime",
        ),
    ]


def _ours_stopped(inventory: Inventory, request: PlanRequest) -> Iterator[Step]:
    commands = _deleted(_configurations(inventory, volcano=False))
    if policies := _admission_policies(inventory, Maker.VCBATCH):
        commands.append(f"kubectl delete {' '.join(policies)}")
    for role in (Role.ADMISSION, Role.SCHEDULER, Role.CONTROLLERS):
        commands += _scaled_down(inventory.programs_of(Maker.VCBATCH, role))
    commands.append(f"helm uninstall {RELEASE} -n {request.namespace}" if request.helm else f"vcbatch uninstall "
                    f"--namespace {request.namespace}")  # fmt: skip
    yield Step(
        title="Stop vcbatch: admission, scheduler, controllers",
        why="The configurations are deleted first, so that no pods are rejected. Leases are released. CRDs and all "
        "objects are kept.",
        commands=tuple(commands),
        verify=f"kubectl get lease -n {inventory.components} {SCHEDULER_LEASE} shows no holder, or NotFound",
    )


def _queues_freed(inventory: Inventory) -> Iterator[Step]:
    held = [
        one.name
        for one in inventory.queues
        if one.state_managers and any(manager != QUEUE_MANAGER for manager in one.state_managers)
    ]
    if not held:
        return
    # Without any entry the server would assign all fields to `before-first-apply`, which is another manager as well.
    entry = {
        "manager": "queue-controller",
        "operation": "Apply",
        "apiVersion": QUEUES.api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {"f:state": {}}},
        "subresource": "status",
    }
    change = [{"op": "replace", "path": "/metadata/managedFields", "value": [entry]}]
    patch = quote(json.dumps(change, separators=(",", ":")))
    yield Step(
        title="Release ownership of queue states",
        why="Volcano's queue controller applies `status.state` as field manager queue-controller, without force: if "
        "another manager owns the field, it gets a conflict and can't open or close the queue.",
        commands=tuple(f"kubectl patch queue.scheduling.volcano.sh {name} --type=json -p {patch}" for name in held),
    )


def _crds_back(inventory: Inventory, request: PlanRequest) -> Iterator[Step]:
    names = " ".join(one.name for one in inventory.definitions if one.known)
    if not names:
        return
    yield Step(
        title="Transfer the CRDs back",
        why="Volcano works with the installed CRDs. If Helm managed Volcano, restore its release record from the "
        "backup (here for a release volcano); its next upgrade installs Volcano's CRDs, and uninstalling it deletes "
        "them with all jobs, as before.",
        commands=(
            "kubectl create -f volcano-release.yaml",
            f"kubectl annotate crd {names} --overwrite {RELEASE_NAME}=volcano {RELEASE_NAMESPACE}={request.namespace}",
            f"kubectl label crd {names} --overwrite {MANAGED_BY}=Helm",
        ),
    )


def _volcano_started(inventory: Inventory) -> Iterator[Step]:
    programs = [one for role in (Role.CONTROLLERS, Role.HYPERNODES, Role.SCHEDULER, Role.ADMISSION)
                for one in inventory.programs_of(Maker.VOLCANO, role)]  # fmt: skip
    if not any(one.role in CORE for one in programs):
        yield Step(
            title="Install Volcano",
            why="Its Deployments were deleted: install the previous version, with Helm from the restored record or "
            "from its manifest. Admission is registered by the last command, when its webhook is ready.",
            commands=(
                "helm upgrade volcano volcano-sh/volcano -n volcano-system --version VERSION --reuse-values --wait",
            ),
            verify="kubectl get deployments -n volcano-system",
        )
        return
    commands: list[str] = []
    for one in programs:
        if one.role is Role.ADMISSION:
            # Its Service and its configurations were removed by the migration to vcbatch.
            commands.append(
                f"kubectl expose -n {one.namespace} {one.kind.lower()} {one.name} --name=volcano-admission-service "
                "--port=443 --target-port=8443"
            )
        commands.append(f"kubectl scale -n {one.namespace} {one.kind.lower()} {one.name} --replicas=1")
        if one.kind == "Deployment":
            commands.append(f"kubectl rollout status -n {one.namespace} deployment {one.name} --timeout=120s")
    commands.append(f"kubectl create -f {_WEBHOOKS}")
    if any(one.role is Role.ADMISSION for one in programs):
        where = next(one for one in programs if one.role is Role.ADMISSION)
        commands.append(f"kubectl rollout restart -n {where.namespace} {where.kind.lower()} {where.name}")
    yield Step(
        title="Start Volcano: controllers, scheduler, admission",
        why="The webhook configurations are restored last, from the backup. The restart makes admission write its CA "
        "bundle to them.",
        commands=tuple(commands),
    )


# -- side by side -----------------------------------------------------------------------------------------------------


def beside(inventory: Inventory, request: PlanRequest, name: str) -> list[Step]:
    """The steps to run vcbatch's scheduler for another schedulerName beside Volcano, which keeps controllers and
    admission."""
    taken = scheduler_names(inventory)
    install = f"vcbatch install --namespace {request.namespace} --set components=scheduler --set crds=keep"
    return [
        Step(
            title="Partition the nodes",
            why="Two schedulers on one node don't see each other's decisions until pods are bound, so kubelets reject "
            "pods. If Volcano runs with --scheduler-sharding-mode, use node shards instead (docs/sharding.md).",
            commands=(
                f"kubectl label nodes NODE... {_LABEL}={name}",
                f"kubectl label nodes OTHER-NODE... {quote(f'{_LABEL}={taken[0] if taken else DEFAULT_SCHEDULER}')}",
            ),
        ),
        Step(
            title="Restrict Volcano's scheduler to its nodes",
            why="The flag is --node-selector. The chart has no value for it, so patch the Deployment.",
            commands=tuple(
                f"kubectl patch -n {one.namespace} {one.kind.lower()} {one.name} --type=json -p "
                + quote(
                    '[{"op":"add","path":"/spec/template/spec/containers/0/args/0","value":"--node-selector='
                    f'{_LABEL}:{one.scheduler_names[0]}"}}]'
                )
                for one in inventory.programs_of(Maker.VOLCANO, Role.SCHEDULER)
                if one.scheduler_names
            ),
        ),
        Step(
            title="Create its queues",
            why="Each scheduler counts only its own pods in the shares of a queue.",
            commands=(f"vcctl queue create --name {name} --weight 1",),
        ),
        Step(
            title="Install only the scheduler",
            why="A cluster can have only one set of controllers and admission webhooks: keep Volcano's. Volcano's "
            "scheduler also updates PodGroups of vcbatch's scheduler: the conditions of a pending gang can be "
            "overwritten.",
            commands=(f"{install} --scheduler-name {name} --node-selector {_LABEL}:{name}",),
        ),
        Step(
            title="Submit jobs to it",
            why="Set spec.schedulerName and spec.queue of the Job.",
            commands=("kubectl create -f JOB.yaml",),
            verify="kubectl get pods -o wide lists the pods on its nodes",
        ),
    ]
