"""Pod specs in the form of Kubernetes' internal types, as some of its messages show them.

The internal types have no JSON tags: all fields are written, in the order of their definition, under their Go names.
The table below has that order; it differs from the API's where the internal types do (host namespaces belong to the
security context). Source: kubernetes `pkg/apis/core/types.go`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from vcbatch.api.field_errors import FieldError, ordered
from vcbatch.api.model import Json

_TABLE = """
PodSpec: Volumes:[]Volume InitContainers:[]Container Containers:[]Container EphemeralContainers:[]Ephemeral
 RestartPolicy:s TerminationGracePeriodSeconds ActiveDeadlineSeconds DNSPolicy:s NodeSelector:map ServiceAccountName:s
 AutomountServiceAccountToken NodeName:s SecurityContext:PodSecurity ImagePullSecrets:[]Reference Hostname:s Subdomain:s
 SetHostnameAsFQDN Affinity:Affinity SchedulerName:s Tolerations:[]Toleration HostAliases:[]HostAlias
 PriorityClassName:s Priority PreemptionPolicy DNSConfig:DNS ReadinessGates:[]Gate RuntimeClassName Overhead:map
 EnableServiceLinks TopologySpreadConstraints:[]Spread OS:OS SchedulingGates:[]Name ResourceClaims:[]Claim
 Resources:*Resources HostnameOverride SchedulingGroup
PodSecurity: HostNetwork:b HostPID:b HostIPC:b ShareProcessNamespace HostUsers SELinuxOptions:SELinux
 WindowsOptions:Windows RunAsUser RunAsGroup RunAsNonRoot SupplementalGroups:[] SupplementalGroupsPolicy FSGroup
 FSGroupChangePolicy Sysctls:[]Pair SeccompProfile:Profile AppArmorProfile:Profile SELinuxChangePolicy
SELinux: User:s Role:s Type:s Level:s
Windows: GMSACredentialSpecName GMSACredentialSpec RunAsUserName HostProcess
Profile: Type:s LocalhostProfile
Pair: Name:s Value:s
Name: Name:s
Reference: Name:s
OS: Name:s
Gate: ConditionType:s
Claim: Name:s ResourceClaimName ResourceClaimTemplateName
HostAlias: IP:s Hostnames:[]
DNS: Nameservers:[] Searches:[] Options:[]Option
Option: Name:s Value
Toleration: Key:s Operator:s Value:s Effect:s TolerationSeconds
Spread: MaxSkew:n TopologyKey:s WhenUnsatisfiable:s LabelSelector:raw MinDomains NodeAffinityPolicy NodeTaintsPolicy
 MatchLabelKeys:[]
Affinity: NodeAffinity:NodeAffinity PodAffinity:PodAffinity PodAntiAffinity:PodAffinity
NodeAffinity: RequiredDuringSchedulingIgnoredDuringExecution:NodeSelector
 PreferredDuringSchedulingIgnoredDuringExecution:[]Preferred
NodeSelector: NodeSelectorTerms:[]NodeTerm
NodeTerm: MatchExpressions:[]Requirement MatchFields:[]Requirement
Requirement: Key:s Operator:s Values:[]
Preferred: Weight:n Preference:=NodeTerm
PodAffinity: RequiredDuringSchedulingIgnoredDuringExecution:[]PodTerm
 PreferredDuringSchedulingIgnoredDuringExecution:[]WeightedTerm
WeightedTerm: Weight:n PodAffinityTerm:=PodTerm
PodTerm: LabelSelector:raw Namespaces:[] TopologyKey:s NamespaceSelector:raw MatchLabelKeys:[] MismatchLabelKeys:[]
Container: Name:s Image:s Command:[] Args:[] WorkingDir:s Ports:[]Port EnvFrom:[]EnvFrom Env:[]Env
 Resources:=Resources ResizePolicy:[]Resize RestartPolicy RestartPolicyRules:[]Rule VolumeMounts:[]Mount
 VolumeDevices:[]Device LivenessProbe:Probe ReadinessProbe:Probe StartupProbe:Probe Lifecycle:Lifecycle
 TerminationMessagePath:s TerminationMessagePolicy:s ImagePullPolicy:s SecurityContext:Security Stdin:b StdinOnce:b
 TTY:b
Ephemeral: +Container TargetContainerName:s
Port: Name:s HostPort:n ContainerPort:n Protocol:s HostIP:s
EnvFrom: Prefix:s ConfigMapRef:OptionalName SecretRef:OptionalName
OptionalName: Name:s Optional
Env: Name:s Value:s ValueFrom:ValueFrom
ValueFrom: FieldRef:FieldRef ResourceFieldRef:ResourceRef ConfigMapKeyRef:KeyRef SecretKeyRef:KeyRef FileKeyRef:FileRef
FieldRef: APIVersion:s FieldPath:s
ResourceRef: ContainerName:s Resource:s Divisor:q
KeyRef: Name:s Key:s Optional
FileRef: VolumeName:s Path:s Key:s Optional
Resources: Limits:map Requests:map Claims:[]ContainerClaim
ContainerClaim: Name:s Request:s
Resize: ResourceName:s RestartPolicy:s
Rule: Action:s ExitCodes:ExitCodes
ExitCodes: Operator:s Values:[]
Mount: Name:s ReadOnly:b RecursiveReadOnly MountPath:s SubPath:s MountPropagation SubPathExpr:s
Device: Name:s DevicePath:s
Probe: +Handler InitialDelaySeconds:n TimeoutSeconds:n PeriodSeconds:n SuccessThreshold:n FailureThreshold:n
 TerminationGracePeriodSeconds
Handler: Exec:Exec HTTPGet:HTTP TCPSocket:TCP GRPC:GRPC
Exec: Command:[]
HTTP: Path:s Port:p Host:s Scheme:s HTTPHeaders:[]Pair
TCP: Port:p Host:s
GRPC: Port:n Service
Lifecycle: PostStart:Hook PreStop:Hook StopSignal
Hook: Exec:Exec HTTPGet:HTTP TCPSocket:TCP Sleep:Sleep
Sleep: Seconds:n
Security: Capabilities:Capabilities Privileged SELinuxOptions:SELinux WindowsOptions:Windows RunAsUser RunAsGroup
 RunAsNonRoot ReadOnlyRootFilesystem AllowPrivilegeEscalation ProcMount SeccompProfile:Profile AppArmorProfile:Profile
Capabilities: Add:[] Drop:[]
Volume: Name:s HostPath:HostPath EmptyDir:EmptyDir GCEPersistentDisk:raw AWSElasticBlockStore:raw GitRepo:GitRepo
 Secret:SecretVolume NFS:NFS ISCSI:ISCSI Glusterfs:raw PersistentVolumeClaim:ClaimVolume RBD:raw Quobyte:raw
 FlexVolume:raw Cinder:raw CephFS:CephFS Flocker:raw DownwardAPI:DownwardVolume FC:FC AzureFile:AzureFile
 ConfigMap:ConfigVolume VsphereVolume:raw AzureDisk:raw PhotonPersistentDisk:raw Projected:Projected
 PortworxVolume:raw ScaleIO:raw StorageOS:raw CSI:CSI Ephemeral:EphemeralVolume Image:Image
HostPath: Path:s Type
EmptyDir: Medium:s SizeLimit
GitRepo: Repository:s Revision:s Directory:s
SecretVolume: SecretName:s Items:[]KeyPath DefaultMode Optional
NFS: Server:s Path:s ReadOnly:b
ClaimVolume: ClaimName:s ReadOnly:b
DownwardVolume: Items:[]DownwardFile DefaultMode
DownwardFile: Path:s FieldRef:FieldRef ResourceFieldRef:ResourceRef Mode
ConfigVolume: Name:s Items:[]KeyPath DefaultMode Optional
KeyPath: Key:s Path:s Mode
Projected: Sources:[]Source DefaultMode
Source: Secret:NamedItems DownwardAPI:DownwardSource ConfigMap:NamedItems ServiceAccountToken:Token
 ClusterTrustBundle:raw PodCertificate:raw
NamedItems: Name:s Items:[]KeyPath Optional
DownwardSource: Items:[]DownwardFile
Token: Audience:s ExpirationSeconds:n Path:s
CSI: Driver:s ReadOnly FSType VolumeAttributes:map NodePublishSecretRef:Reference
Image: Reference:s PullPolicy:s
ISCSI: TargetPortal:s IQN:s Lun:n ISCSIInterface:s FSType:s ReadOnly:b Portals:[] DiscoveryCHAPAuth:b SessionCHAPAuth:b
 SecretRef:Reference InitiatorName
FC: TargetWWNs:[] Lun FSType:s ReadOnly:b WWIDs:[]
CephFS: Monitors:[] Path:s User:s SecretFile:s SecretRef:Reference ReadOnly:b
AzureFile: SecretName:s ShareName:s ReadOnly:b
EphemeralVolume: VolumeClaimTemplate:ClaimTemplate
ClaimTemplate: +metadata Spec:=ClaimSpec
ClaimSpec: AccessModes:[] Selector:raw Resources:=Amounts VolumeName:s StorageClassName VolumeMode
 DataSource:LocalReference DataSourceRef:ObjectReference VolumeAttributesClassName
Amounts: Limits:map Requests:map
LocalReference: APIGroup Kind:s Name:s
ObjectReference: APIGroup Kind:s Name:s Namespace
"""

_ZEROS: dict[str, Any] = {"s": "", "n": 0, "b": False, "q": "0", "p": 0}
_IN_SECURITY = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")


@lru_cache(maxsize=1)
def _fields() -> dict[str, list[tuple[str, str, str]]]:
    """A mapping from each type to its fields: Go name, JSON name, kind."""
    table: dict[str, list[tuple[str, str, str]]] = {}
    current = ""
    for word in _TABLE.split():
        if word.endswith(":"):
            current = word[:-1]
            table[current] = []
        elif word.startswith("+"):
            table[current].append(("+", "", word[1:]))
        else:
            name, _, kind = word.partition(":")
            table[current].append((name, _json_name(name), kind))
    return table


_SPECIAL_NAMES = {
    "SELinuxOptions": "seLinuxOptions",
    "SELinuxChangePolicy": "seLinuxChangePolicy",
    "StorageOS": "storageos",
    "CephFS": "cephfs",
    "HTTPGet": "httpGet",
    "HTTPHeaders": "httpHeaders",
    "FSGroup": "fsGroup",
    "FSGroupChangePolicy": "fsGroupChangePolicy",
    "FSType": "fsType",
    "APIVersion": "apiVersion",
    "DNSPolicy": "dnsPolicy",
    "DNSConfig": "dnsConfig",
    "GCEPersistentDisk": "gcePersistentDisk",
    "AWSElasticBlockStore": "awsElasticBlockStore",
    "TCPSocket": "tcpSocket",
    "ISCSIInterface": "iscsiInterface",
    "DiscoveryCHAPAuth": "chapAuthDiscovery",
    "SessionCHAPAuth": "chapAuthSession",
    "WWIDs": "wwids",
    "APIGroup": "apiGroup",
    "GMSACredentialSpec": "gmsaCredentialSpec",
    "GMSACredentialSpecName": "gmsaCredentialSpecName",
}


def _json_name(name: str) -> str:
    if name in _SPECIAL_NAMES:
        return _SPECIAL_NAMES[name]
    return name.lower() if name.isupper() else name[0].lower() + name[1:]


def _internal(value: Any, kind: str) -> Any:
    """A value of the API in the format of the internal type of this kind."""
    if kind.startswith("[]"):
        return [_internal(item, kind[2:]) for item in value] if value else None
    if kind == "map":
        return dict(sorted(value.items())) if value else None
    if kind in _ZEROS:
        return _ZEROS[kind] if value is None else value
    if kind.startswith("="):
        return internal(value or {}, kind[1:])
    if value is None or kind in ("", "raw"):
        return value
    return internal(value, kind.removeprefix("*"))


def internal(value: Json, type_name: str) -> Json:
    """The value of a type of the table, with all fields in order."""
    if type_name == "PodSpec":
        moved = {key: value[key] for key in _IN_SECURITY if key in value}
        value = {**value, "securityContext": {**(value.get("securityContext") or {}), **moved}}
    written: Json = {}
    for name, key, kind in _fields()[type_name]:
        if name == "+" and kind == "metadata":
            written.update(value.get("metadata") or {})
        elif name == "+":
            written.update(internal(value, kind))
        else:
            written[name] = _internal(value.get(key), kind)
    return written


def invalid(path: str, value: Json | None, type_name: str, detail: str) -> FieldError:
    """`Invalid value` of a struct of the table, shown in its internal form."""
    shown = "null" if value is None else ordered(internal(value, type_name))
    return FieldError(reason="FieldValueInvalid", field=path, message=f"Invalid value: {shown}: {detail}")
