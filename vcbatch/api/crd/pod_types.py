"""The types of a pod template, as Kubernetes 1.36 has them, one line or a few for each.

    Type [atomic] [< base]
        field[!]: type [atomic | set | map(keys)] [= default]; …

`!` marks a required field; `[T]` is a list, `{T}` a map of strings to T. The words after the type are the
`x-kubernetes-list-type` and `x-kubernetes-map-type` by which server-side apply merges. A test compares this table with
the definitions that Kubernetes publishes.
"""

from typing import Final

KUBERNETES: Final = "1.36"
"""The Kubernetes release that this pod template is from."""

POD_TYPES: Final = """
PodTemplateSpec
    metadata: metadata; spec: PodSpec;
PodSpec
    activeDeadlineSeconds: int64; affinity: Affinity; automountServiceAccountToken: bool;
    containers!: [Container] map(name); dnsConfig: PodDNSConfig; dnsPolicy: string; enableServiceLinks: bool;
    ephemeralContainers: [EphemeralContainer] map(name); hostAliases: [HostAlias] map(ip); hostIPC: bool;
    hostNetwork: bool; hostPID: bool; hostUsers: bool; hostname: string; hostnameOverride: string;
    imagePullSecrets: [LocalObjectReference] map(name); initContainers: [Container] map(name); nodeName: string;
    nodeSelector: {string} atomic; os: PodOS; overhead: {quantity}; preemptionPolicy: string; priority: int32;
    priorityClassName: string; readinessGates: [PodReadinessGate] atomic;
    resourceClaims: [PodResourceClaim] map(name); resources: ResourceRequirements; restartPolicy: string;
    runtimeClassName: string; schedulerName: string; schedulingGates: [PodSchedulingGate] map(name);
    schedulingGroup: PodSchedulingGroup; securityContext: PodSecurityContext; serviceAccount: string;
    serviceAccountName: string; setHostnameAsFQDN: bool; shareProcessNamespace: bool; subdomain: string;
    terminationGracePeriodSeconds: int64; tolerations: [Toleration] atomic;
    topologySpreadConstraints: [TopologySpreadConstraint] map(topologyKey whenUnsatisfiable);
    volumes: [Volume] map(name);
PersistentVolumeClaimSpec
    accessModes: [string] atomic; dataSource: TypedLocalObjectReference; dataSourceRef: TypedObjectReference;
    resources: VolumeResourceRequirements; selector: LabelSelector; storageClassName: string;
    volumeAttributesClassName: string; volumeMode: string; volumeName: string;
Affinity
    nodeAffinity: NodeAffinity; podAffinity: PodAffinity; podAntiAffinity: PodAntiAffinity;
Container
    args: [string] atomic; command: [string] atomic; env: [EnvVar] map(name); envFrom: [EnvFromSource] atomic;
    image: string; imagePullPolicy: string; lifecycle: Lifecycle; livenessProbe: Probe; name!: string;
    ports: [ContainerPort] map(containerPort protocol); readinessProbe: Probe;
    resizePolicy: [ContainerResizePolicy] atomic; resources: ResourceRequirements; restartPolicy: string;
    restartPolicyRules: [ContainerRestartRule] atomic; securityContext: SecurityContext; startupProbe: Probe;
    stdin: bool; stdinOnce: bool; terminationMessagePath: string; terminationMessagePolicy: string; tty: bool;
    volumeDevices: [VolumeDevice] map(devicePath); volumeMounts: [VolumeMount] map(mountPath); workingDir: string;
PodDNSConfig
    nameservers: [string] atomic; options: [PodDNSConfigOption] atomic; searches: [string] atomic;
EphemeralContainer < Container
    targetContainerName: string;
HostAlias
    hostnames: [string] atomic; ip!: string;
LocalObjectReference atomic
    name: string = "";
PodOS
    name!: string;
PodReadinessGate
    conditionType!: string;
PodResourceClaim
    name!: string; resourceClaimName: string; resourceClaimTemplateName: string;
ResourceRequirements
    claims: [ResourceClaim] map(name); limits: {quantity}; requests: {quantity};
PodSchedulingGate
    name!: string;
PodSchedulingGroup
    podGroupName: string;
PodSecurityContext
    appArmorProfile: AppArmorProfile; fsGroup: int64; fsGroupChangePolicy: string; runAsGroup: int64;
    runAsNonRoot: bool; runAsUser: int64; seLinuxChangePolicy: string; seLinuxOptions: SELinuxOptions;
    seccompProfile: SeccompProfile; supplementalGroups: [int64] atomic; supplementalGroupsPolicy: string;
    sysctls: [Sysctl] atomic; windowsOptions: WindowsSecurityContextOptions;
Toleration
    effect: string; key: string; operator: string; tolerationSeconds: int64; value: string;
TopologySpreadConstraint
    labelSelector: LabelSelector; matchLabelKeys: [string] atomic; maxSkew!: int32; minDomains: int32;
    nodeAffinityPolicy: string; nodeTaintsPolicy: string; topologyKey!: string; whenUnsatisfiable!: string;
Volume
    awsElasticBlockStore: AWSElasticBlockStoreVolumeSource; azureDisk: AzureDiskVolumeSource;
    azureFile: AzureFileVolumeSource; cephfs: CephFSVolumeSource; cinder: CinderVolumeSource;
    configMap: ConfigMapVolumeSource; csi: CSIVolumeSource; downwardAPI: DownwardAPIVolumeSource;
    emptyDir: EmptyDirVolumeSource; ephemeral: EphemeralVolumeSource; fc: FCVolumeSource;
    flexVolume: FlexVolumeSource; flocker: FlockerVolumeSource; gcePersistentDisk: GCEPersistentDiskVolumeSource;
    gitRepo: GitRepoVolumeSource; glusterfs: GlusterfsVolumeSource; hostPath: HostPathVolumeSource;
    image: ImageVolumeSource; iscsi: ISCSIVolumeSource; name!: string; nfs: NFSVolumeSource;
    persistentVolumeClaim: PersistentVolumeClaimVolumeSource;
    photonPersistentDisk: PhotonPersistentDiskVolumeSource; portworxVolume: PortworxVolumeSource;
    projected: ProjectedVolumeSource; quobyte: QuobyteVolumeSource; rbd: RBDVolumeSource;
    scaleIO: ScaleIOVolumeSource; secret: SecretVolumeSource; storageos: StorageOSVolumeSource;
    vsphereVolume: VsphereVirtualDiskVolumeSource;
TypedLocalObjectReference atomic
    apiGroup: string; kind!: string; name!: string;
TypedObjectReference
    apiGroup: string; kind!: string; name!: string; namespace: string;
VolumeResourceRequirements
    limits: {quantity}; requests: {quantity};
LabelSelector atomic
    matchExpressions: [LabelSelectorRequirement] atomic; matchLabels: {string};
NodeAffinity
    preferredDuringSchedulingIgnoredDuringExecution: [PreferredSchedulingTerm] atomic;
    requiredDuringSchedulingIgnoredDuringExecution: NodeSelector;
PodAffinity
    preferredDuringSchedulingIgnoredDuringExecution: [WeightedPodAffinityTerm] atomic;
    requiredDuringSchedulingIgnoredDuringExecution: [PodAffinityTerm] atomic;
PodAntiAffinity
    preferredDuringSchedulingIgnoredDuringExecution: [WeightedPodAffinityTerm] atomic;
    requiredDuringSchedulingIgnoredDuringExecution: [PodAffinityTerm] atomic;
EnvVar
    name!: string; value: string; valueFrom: EnvVarSource;
EnvFromSource
    configMapRef: ConfigMapEnvSource; prefix: string; secretRef: SecretEnvSource;
Lifecycle
    postStart: LifecycleHandler; preStop: LifecycleHandler; stopSignal: string;
Probe
    exec: ExecAction; failureThreshold: int32; grpc: GRPCAction; httpGet: HTTPGetAction; initialDelaySeconds: int32;
    periodSeconds: int32; successThreshold: int32; tcpSocket: TCPSocketAction; terminationGracePeriodSeconds: int64;
    timeoutSeconds: int32;
ContainerPort
    containerPort!: int32; hostIP: string; hostPort: int32; name: string; protocol: string = "TCP";
ContainerResizePolicy
    resourceName!: string; restartPolicy!: string;
ContainerRestartRule
    action!: string; exitCodes: ContainerRestartRuleOnExitCodes;
SecurityContext
    allowPrivilegeEscalation: bool; appArmorProfile: AppArmorProfile; capabilities: Capabilities; privileged: bool;
    procMount: string; readOnlyRootFilesystem: bool; runAsGroup: int64; runAsNonRoot: bool; runAsUser: int64;
    seLinuxOptions: SELinuxOptions; seccompProfile: SeccompProfile; windowsOptions: WindowsSecurityContextOptions;
VolumeDevice
    devicePath!: string; name!: string;
VolumeMount
    mountPath!: string; mountPropagation: string; name!: string; readOnly: bool; recursiveReadOnly: string;
    subPath: string; subPathExpr: string;
PodDNSConfigOption
    name: string; value: string;
ResourceClaim
    name!: string; request: string;
AppArmorProfile
    localhostProfile: string; type!: string;
SELinuxOptions
    level: string; role: string; type: string; user: string;
SeccompProfile
    localhostProfile: string; type!: string;
Sysctl
    name!: string; value!: string;
WindowsSecurityContextOptions
    gmsaCredentialSpec: string; gmsaCredentialSpecName: string; hostProcess: bool; runAsUserName: string;
AWSElasticBlockStoreVolumeSource
    fsType: string; partition: int32; readOnly: bool; volumeID!: string;
AzureDiskVolumeSource
    cachingMode: string = "ReadWrite"; diskName!: string; diskURI!: string; fsType: string = "ext4";
    kind: string = "Shared"; readOnly: bool = false;
AzureFileVolumeSource
    readOnly: bool; secretName!: string; shareName!: string;
CephFSVolumeSource
    monitors!: [string] atomic; path: string; readOnly: bool; secretFile: string; secretRef: LocalObjectReference;
    user: string;
CinderVolumeSource
    fsType: string; readOnly: bool; secretRef: LocalObjectReference; volumeID!: string;
ConfigMapVolumeSource
    defaultMode: int32; items: [KeyToPath] atomic; name: string = ""; optional: bool;
CSIVolumeSource
    driver!: string; fsType: string; nodePublishSecretRef: LocalObjectReference; readOnly: bool;
    volumeAttributes: {string};
DownwardAPIVolumeSource
    defaultMode: int32; items: [DownwardAPIVolumeFile] atomic;
EmptyDirVolumeSource
    medium: string; sizeLimit: quantity;
EphemeralVolumeSource
    volumeClaimTemplate: PersistentVolumeClaimTemplate;
FCVolumeSource
    fsType: string; lun: int32; readOnly: bool; targetWWNs: [string] atomic; wwids: [string] atomic;
FlexVolumeSource
    driver!: string; fsType: string; options: {string}; readOnly: bool; secretRef: LocalObjectReference;
FlockerVolumeSource
    datasetName: string; datasetUUID: string;
GCEPersistentDiskVolumeSource
    fsType: string; partition: int32; pdName!: string; readOnly: bool;
GitRepoVolumeSource
    directory: string; repository!: string; revision: string;
GlusterfsVolumeSource
    endpoints!: string; path!: string; readOnly: bool;
HostPathVolumeSource
    path!: string; type: string;
ImageVolumeSource
    pullPolicy: string; reference: string;
ISCSIVolumeSource
    chapAuthDiscovery: bool; chapAuthSession: bool; fsType: string; initiatorName: string; iqn!: string;
    iscsiInterface: string = "default"; lun!: int32; portals: [string] atomic; readOnly: bool;
    secretRef: LocalObjectReference; targetPortal!: string;
NFSVolumeSource
    path!: string; readOnly: bool; server!: string;
PersistentVolumeClaimVolumeSource
    claimName!: string; readOnly: bool;
PhotonPersistentDiskVolumeSource
    fsType: string; pdID!: string;
PortworxVolumeSource
    fsType: string; readOnly: bool; volumeID!: string;
ProjectedVolumeSource
    defaultMode: int32; sources: [VolumeProjection] atomic;
QuobyteVolumeSource
    group: string; readOnly: bool; registry!: string; tenant: string; user: string; volume!: string;
RBDVolumeSource
    fsType: string; image!: string; keyring: string = "/etc/ceph/keyring"; monitors!: [string] atomic;
    pool: string = "rbd"; readOnly: bool; secretRef: LocalObjectReference; user: string = "admin";
ScaleIOVolumeSource
    fsType: string = "xfs"; gateway!: string; protectionDomain: string; readOnly: bool;
    secretRef!: LocalObjectReference; sslEnabled: bool; storageMode: string = "ThinProvisioned";
    storagePool: string; system!: string; volumeName: string;
SecretVolumeSource
    defaultMode: int32; items: [KeyToPath] atomic; optional: bool; secretName: string;
StorageOSVolumeSource
    fsType: string; readOnly: bool; secretRef: LocalObjectReference; volumeName: string; volumeNamespace: string;
VsphereVirtualDiskVolumeSource
    fsType: string; storagePolicyID: string; storagePolicyName: string; volumePath!: string;
LabelSelectorRequirement
    key!: string; operator!: string; values: [string] atomic;
PreferredSchedulingTerm
    preference!: NodeSelectorTerm; weight!: int32;
NodeSelector atomic
    nodeSelectorTerms!: [NodeSelectorTerm] atomic;
WeightedPodAffinityTerm
    podAffinityTerm!: PodAffinityTerm; weight!: int32;
PodAffinityTerm
    labelSelector: LabelSelector; matchLabelKeys: [string] atomic; mismatchLabelKeys: [string] atomic;
    namespaceSelector: LabelSelector; namespaces: [string] atomic; topologyKey!: string;
EnvVarSource
    configMapKeyRef: ConfigMapKeySelector; fieldRef: ObjectFieldSelector; fileKeyRef: FileKeySelector;
    resourceFieldRef: ResourceFieldSelector; secretKeyRef: SecretKeySelector;
ConfigMapEnvSource
    name: string = ""; optional: bool;
SecretEnvSource
    name: string = ""; optional: bool;
LifecycleHandler
    exec: ExecAction; httpGet: HTTPGetAction; sleep: SleepAction; tcpSocket: TCPSocketAction;
ExecAction
    command: [string] atomic;
GRPCAction
    port!: int32; service: string = "";
HTTPGetAction
    host: string; httpHeaders: [HTTPHeader] atomic; path: string; port!: int-or-string; scheme: string;
TCPSocketAction
    host: string; port!: int-or-string;
ContainerRestartRuleOnExitCodes
    operator!: string; values: [int32] set;
Capabilities
    add: [string] atomic; drop: [string] atomic;
KeyToPath
    key!: string; mode: int32; path!: string;
DownwardAPIVolumeFile
    fieldRef: ObjectFieldSelector; mode: int32; path!: string; resourceFieldRef: ResourceFieldSelector;
PersistentVolumeClaimTemplate
    metadata: metadata; spec!: PersistentVolumeClaimSpec;
VolumeProjection
    clusterTrustBundle: ClusterTrustBundleProjection; configMap: ConfigMapProjection;
    downwardAPI: DownwardAPIProjection; podCertificate: PodCertificateProjection; secret: SecretProjection;
    serviceAccountToken: ServiceAccountTokenProjection;
NodeSelectorTerm atomic
    matchExpressions: [NodeSelectorRequirement] atomic; matchFields: [NodeSelectorRequirement] atomic;
ConfigMapKeySelector atomic
    key!: string; name: string = ""; optional: bool;
ObjectFieldSelector atomic
    apiVersion: string; fieldPath!: string;
FileKeySelector atomic
    key!: string; optional: bool; path!: string; volumeName!: string;
ResourceFieldSelector atomic
    containerName: string; divisor: quantity; resource!: string;
SecretKeySelector atomic
    key!: string; name: string = ""; optional: bool;
SleepAction
    seconds!: int64;
HTTPHeader
    name!: string; value!: string;
ClusterTrustBundleProjection
    labelSelector: LabelSelector; name: string; optional: bool; path!: string; signerName: string;
ConfigMapProjection
    items: [KeyToPath] atomic; name: string = ""; optional: bool;
DownwardAPIProjection
    items: [DownwardAPIVolumeFile] atomic;
PodCertificateProjection
    certificateChainPath: string; credentialBundlePath: string; keyPath: string; keyType!: string;
    maxExpirationSeconds: int32; signerName!: string; userAnnotations: {string};
SecretProjection
    items: [KeyToPath] atomic; name: string = ""; optional: bool;
ServiceAccountTokenProjection
    audience: string; expirationSeconds: int64; path!: string;
NodeSelectorRequirement
    key!: string; operator!: string; values: [string] atomic;
"""
