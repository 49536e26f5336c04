//! The columns of every built-in kind that Kubernetes has a printer for, and which function fills them.
//! Must not know how cells are computed.

use std::borrow::Cow;

use serde_json::Value;

use super::object::Object;
use super::{Column, cluster, event, network, scaling, storage, workload};

/// A column that is known at compile time.
pub(super) struct Spec {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    priority: i64,
    description: &'static str,
}

impl Spec {
    const fn new(kind: &'static str, name: &'static str, description: &'static str) -> Self {
        Self { name, kind, format: "", priority: 0, description }
    }

    const fn wide(name: &'static str, description: &'static str) -> Self {
        Self { name, kind: STRING, format: "", priority: 1, description }
    }

    pub(super) fn column(&self) -> Column {
        Column {
            name: Cow::Borrowed(self.name),
            kind: Cow::Borrowed(self.kind),
            format: Cow::Borrowed(self.format),
            description: Cow::Borrowed(self.description),
            priority: self.priority,
        }
    }
}

const STRING: &str = "string";
const INTEGER: &str = "integer";
const BOOLEAN: &str = "boolean";

pub(super) const NAME: Spec =
    Spec { name: "Name", kind: STRING, format: "name", priority: 0, description: "Name of the object" };
/// Custom kinds measure their age as a date.
pub(super) const CUSTOM_AGE: Spec = Spec::new("date", "Age", "How long ago the object was created");
const AGE: Spec = Spec::new(STRING, "Age", "How long ago the object was created");
const CONTAINERS: Spec = Spec::wide("Containers", "Names of the containers");
const IMAGES: Spec = Spec::wide("Images", "Images of the containers");

/// Columns and the function that fills them.
type Printed = (&'static [Spec], fn(&Object<'_>) -> Vec<Value>);

/// The columns of a kind and the function that fills them.
pub(super) fn of(group: &str, kind: &str) -> Printed {
    match group {
        "" => core(kind),
        "apps" | "batch" | "autoscaling" | "policy" => workloads(kind),
        "networking.k8s.io" | "discovery.k8s.io" => networking(kind),
        "storage.k8s.io" => stored(kind),
        "rbac.authorization.k8s.io" | "certificates.k8s.io" | "admissionregistration.k8s.io" => access(kind),
        "events.k8s.io" => (EVENT, event::event),
        "coordination.k8s.io" if kind == "Lease" => (LEASE, cluster::lease),
        "scheduling.k8s.io" if kind == "PriorityClass" => (PRIORITY_CLASS, cluster::priority_class),
        "node.k8s.io" if kind == "RuntimeClass" => (RUNTIME_CLASS, cluster::runtime_class),
        "apiregistration.k8s.io" => (API_SERVICE, cluster::api_service),
        _ => (CREATED, cluster::created),
    }
}

fn core(kind: &str) -> Printed {
    match kind {
        "ConfigMap" => (CONFIG_MAP, cluster::config_map),
        "Endpoints" => (ENDPOINTS, network::endpoints),
        "Event" => (EVENT, event::event),
        "Namespace" => (NAMESPACE, cluster::namespace),
        "Node" => (NODE, cluster::node),
        "PersistentVolume" => (PV, storage::persistent_volume),
        "PersistentVolumeClaim" => (PVC, storage::persistent_volume_claim),
        "PodTemplate" => (POD_TEMPLATE, workload::pod_template),
        "ReplicationController" => (REPLICAS, workload::replication_controller),
        "ResourceQuota" => (RESOURCE_QUOTA, cluster::resource_quota),
        "Secret" => (SECRET, cluster::secret),
        "Service" => (SERVICE, network::service),
        "ServiceAccount" => (AGE_ONLY, cluster::name_and_age),
        _ => (CREATED, cluster::created),
    }
}

fn workloads(kind: &str) -> Printed {
    match kind {
        "ControllerRevision" => (CONTROLLER_REVISION, workload::controller_revision),
        "CronJob" => (CRON_JOB, workload::cron_job),
        "DaemonSet" => (DAEMON_SET, workload::daemon_set),
        "Deployment" => (DEPLOYMENT, workload::deployment),
        "HorizontalPodAutoscaler" => (HPA, scaling::horizontal_pod_autoscaler),
        "Job" => (JOB, workload::job),
        "PodDisruptionBudget" => (PDB, workload::pod_disruption_budget),
        "ReplicaSet" => (REPLICAS, workload::replica_set),
        "Scale" => (SCALE, scaling::scale),
        "StatefulSet" => (STATEFUL_SET, workload::stateful_set),
        _ => (CREATED, cluster::created),
    }
}

fn networking(kind: &str) -> Printed {
    match kind {
        "EndpointSlice" => (ENDPOINT_SLICE, network::endpoint_slice),
        "IPAddress" => (IP_ADDRESS, network::ip_address),
        "Ingress" => (INGRESS, network::ingress),
        "IngressClass" => (INGRESS_CLASS, network::ingress_class),
        "NetworkPolicy" => (NETWORK_POLICY, network::network_policy),
        "ServiceCIDR" => (SERVICE_CIDR, network::service_cidr),
        _ => (CREATED, cluster::created),
    }
}

fn stored(kind: &str) -> Printed {
    match kind {
        "CSIDriver" => (CSI_DRIVER, storage::csi_driver),
        "CSINode" => (CSI_NODE, storage::csi_node),
        "StorageClass" => (STORAGE_CLASS, storage::storage_class),
        "VolumeAttachment" => (VOLUME_ATTACHMENT, storage::volume_attachment),
        "VolumeAttributesClass" => (VAC, storage::volume_attributes_class),
        _ => (CREATED, cluster::created),
    }
}

fn access(kind: &str) -> Printed {
    match kind {
        "CertificateSigningRequest" => (CSR, cluster::certificate_signing_request),
        "ClusterRoleBinding" | "RoleBinding" => (BINDING, cluster::role_binding),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            (WEBHOOKS, cluster::webhook_configuration)
        }
        "ValidatingAdmissionPolicy" => (VAP, cluster::validating_admission_policy),
        "ValidatingAdmissionPolicyBinding" => (VAP_BINDING, cluster::validating_admission_policy_binding),
        _ => (CREATED, cluster::created),
    }
}

const CREATED: &[Spec] = &[NAME, Spec::new("date", "Created At", "When the object was created")];
const SCALE: &[Spec] = &[
    Spec::new(STRING, "Name", "Name of the object"),
    Spec::new(INTEGER, "Desired", "Pods wanted"),
    Spec::new(INTEGER, "Available", "Pods that exist"),
    AGE,
];
const EVENT: &[Spec] = &[
    Spec::new(STRING, "Last Seen", "How long ago it last happened"),
    Spec::new(STRING, "Type", "Normal or Warning"),
    Spec::new(STRING, "Reason", "What happened, in a word"),
    Spec::new(STRING, "Object", "What it happened to"),
    Spec::wide("Subobject", "Part of the object"),
    Spec::wide("Source", "Who reports it"),
    Spec::new(STRING, "Message", "What happened"),
    Spec::wide("First Seen", "How long ago it first happened"),
    Spec::wide("Count", "How often it happened"),
    Spec { name: "Name", kind: STRING, format: "name", priority: 1, description: "Name of the object" },
];
pub(super) const POD: &[Spec] = &[
    NAME,
    Spec::new(STRING, "Ready", "Ready containers of all containers"),
    Spec::new(STRING, "Status", "Phase, or what keeps the containers from running"),
    Spec::new(STRING, "Restarts", "Restarts of the containers, and how long ago the last one was"),
    AGE,
    Spec::wide("IP", "First address of the pod"),
    Spec::wide("Node", "Node that the pod is bound to"),
    Spec::wide("Nominated Node", "Node that the pod may preempt others on"),
    Spec::wide("Readiness Gates", "Readiness gates that are open, of all"),
];
const POD_TEMPLATE: &[Spec] = &[
    NAME,
    Spec::new(STRING, "Containers", "Names of the containers"),
    Spec::new(STRING, "Images", "Images of the containers"),
    Spec::new(STRING, "Pod Labels", "Labels of the pods"),
];
const PDB: &[Spec] = &[
    NAME,
    Spec::new(STRING, "Min Available", "Pods that must stay available"),
    Spec::new(STRING, "Max Unavailable", "Pods that may be away"),
    Spec::new(INTEGER, "Allowed Disruptions", "Pods that may be evicted now"),
    AGE,
];
const REPLICAS: &[Spec] = &[
    NAME,
    Spec::new(INTEGER, "Desired", "Pods wanted"),
    Spec::new(INTEGER, "Current", "Pods that exist"),
    Spec::new(INTEGER, "Ready", "Pods that are ready"),
    AGE,
    CONTAINERS,
    IMAGES,
    Spec::wide("Selector", "Labels of the pods"),
];
const DAEMON_SET: &[Spec] = &[
    NAME,
    Spec::new(INTEGER, "Desired", "Nodes that should run the pod"),
    Spec::new(INTEGER, "Current", "Nodes that run the pod"),
    Spec::new(INTEGER, "Ready", "Pods that are ready"),
    Spec::new(INTEGER, "Up-to-date", "Pods of the current template"),
    Spec::new(INTEGER, "Available", "Pods that are available"),
    Spec::new(STRING, "Node Selector", "Labels of the nodes"),
    AGE,
    CONTAINERS,
    IMAGES,
    Spec::wide("Selector", "Labels of the pods"),
];
const DEPLOYMENT: &[Spec] = &[
    NAME,
    Spec::new(STRING, "Ready", "Ready pods of those wanted"),
    Spec::new(STRING, "Up-to-date", "Pods of the current template"),
    Spec::new(STRING, "Available", "Pods that are available"),
    AGE,
    CONTAINERS,
    IMAGES,
    Spec::wide("Selector", "Labels of the pods"),
];
const STATEFUL_SET: &[Spec] =
    &[NAME, Spec::new(STRING, "Ready", "Ready pods of those wanted"), AGE, CONTAINERS, IMAGES];
const JOB: &[Spec] = &[
    NAME,
    Spec::new(STRING, "Status", "State of the job"),
    Spec::new(STRING, "Completions", "Pods that succeeded, of those wanted"),
    Spec::new(STRING, "Duration", "How long the job ran"),
    AGE,
    CONTAINERS,
    IMAGES,
    Spec::wide("Selector", "Labels of the pods"),
];
const CRON_JOB: &[Spec] = &[
    NAME,
    Spec::new(STRING, "Schedule", "When the job runs, in cron format"),
    Spec::new(STRING, "Timezone", "Time zone of the schedule"),
    Spec::new(BOOLEAN, "Suspend", "Whether runs are suspended"),
    Spec::new(INTEGER, "Active", "Jobs that run now"),
    Spec::new(STRING, "Last Schedule", "How long ago a job was last started"),
    AGE,
    CONTAINERS,
    IMAGES,
    Spec::wide("Selector", "Labels of the pods"),
];
const SERVICE: &[Spec] = &[
    NAME,
    Spec::new(STRING, "Type", "How the service is exposed"),
    Spec::new(STRING, "Cluster-IP", "Address inside the cluster"),
    Spec::new(STRING, "External-IP", "Addresses outside the cluster"),
    Spec::new(STRING, "Port(s)", "Ports with their protocols"),
    AGE,
    Spec::wide("Selector", "Labels of the pods"),
];
const INGRESS: &[Spec] = &[
    NAME,
    Spec::new(STRING, "Class", "Ingress class"),
    Spec::new(STRING, "Hosts", "Hosts of the rules"),
    Spec::new(STRING, "Address", "Addresses of the load balancer"),
    Spec::new(STRING, "Ports", "Ports that are open"),
    AGE,
];
const INGRESS_CLASS: &[Spec] = &[
    NAME,
    Spec::new(STRING, "Controller", "Controller of the class"),
    Spec::new(STRING, "Parameters", "Object with further settings"),
    AGE,
];
const ENDPOINTS: &[Spec] = &[NAME, Spec::new(STRING, "Endpoints", "Addresses with their ports"), AGE];
const NODE: &[Spec] = &[
    NAME,
    Spec::new(STRING, "Status", "Whether the node is ready and takes pods"),
    Spec::new(STRING, "Roles", "Roles of the node"),
    AGE,
    Spec::new(STRING, "Version", "Version of the kubelet"),
    Spec::wide("Internal-IP", "Address inside the cluster"),
    Spec::wide("External-IP", "Address outside the cluster"),
    Spec::wide("OS-Image", "Operating system"),
    Spec::wide("Kernel-Version", "Version of the kernel"),
    Spec::wide("Container-Runtime", "Container runtime and its version"),
];
const NAMESPACE: &[Spec] = &[NAME, Spec::new(STRING, "Status", "Phase of the namespace"), AGE];
const SECRET: &[Spec] = &[
    NAME,
    Spec::new(STRING, "Type", "What the data is for"),
    Spec::new(STRING, "Data", "Number of entries"),
    AGE,
];
const AGE_ONLY: &[Spec] = &[NAME, AGE];
const PV: &[Spec] = &[
    NAME,
    Spec::new(STRING, "Capacity", "Size of the volume"),
    Spec::new(STRING, "Access Modes", "Ways the volume can be mounted"),
    Spec::new(STRING, "Reclaim Policy", "What happens to the volume when it is released"),
    Spec::new(STRING, "Status", "Phase of the volume"),
    Spec::new(STRING, "Claim", "Claim the volume is bound to"),
    Spec::new(STRING, "StorageClass", "Storage class of the volume"),
    Spec::new(STRING, "VolumeAttributesClass", "Volume attributes class of the volume"),
    Spec::new(STRING, "Reason", "Why the volume is in this phase"),
    AGE,
    Spec::wide("VolumeMode", "File system or block device"),
];
const PVC: &[Spec] = &[
    NAME,
    Spec::new(STRING, "Status", "Phase of the claim"),
    Spec::new(STRING, "Volume", "Volume the claim is bound to"),
    Spec::new(STRING, "Capacity", "Size of the volume"),
    Spec::new(STRING, "Access Modes", "Ways the volume can be mounted"),
    Spec::new(STRING, "StorageClass", "Storage class of the claim"),
    Spec::new(STRING, "VolumeAttributesClass", "Volume attributes class of the claim"),
    AGE,
    Spec::wide("VolumeMode", "File system or block device"),
];
const HPA: &[Spec] = &[
    NAME,
    Spec::new(STRING, "Reference", "What is scaled"),
    Spec::new(STRING, "Targets", "Current and wanted value of each metric"),
    Spec::new(STRING, "MinPods", "Lower limit"),
    Spec::new(STRING, "MaxPods", "Upper limit"),
    Spec::new(STRING, "Replicas", "Pods that exist"),
    AGE,
];
const CONFIG_MAP: &[Spec] = &[NAME, Spec::new(STRING, "Data", "Number of entries"), AGE];
const NETWORK_POLICY: &[Spec] = &[NAME, Spec::new(STRING, "Pod-Selector", "Labels of the pods"), AGE];
const BINDING: &[Spec] = &[
    NAME,
    Spec::new(STRING, "Role", "Role that is granted"),
    AGE,
    Spec::wide("Users", "Users who have the role"),
    Spec::wide("Groups", "Groups that have the role"),
    Spec::wide("ServiceAccounts", "Service accounts that have the role"),
];
const CSR: &[Spec] = &[
    NAME,
    AGE,
    Spec::new(STRING, "SignerName", "Who is asked to sign"),
    Spec::new(STRING, "Requestor", "Who asks"),
    Spec::new(STRING, "RequestedDuration", "How long the certificate should be valid"),
    Spec::new(STRING, "Condition", "What was decided"),
];
const LEASE: &[Spec] = &[NAME, Spec::new(STRING, "Holder", "Who holds the lease"), AGE];
const STORAGE_CLASS: &[Spec] = &[
    NAME,
    Spec::new(STRING, "Provisioner", "Who provisions volumes"),
    Spec::new(STRING, "ReclaimPolicy", "What happens to released volumes"),
    Spec::new(STRING, "VolumeBindingMode", "When volumes are bound"),
    Spec::new(STRING, "AllowVolumeExpansion", "Whether volumes can grow"),
    AGE,
];
const VAC: &[Spec] = &[NAME, Spec::new(STRING, "DriverName", "Driver of the class"), AGE];
const VOLUME_ATTACHMENT: &[Spec] = &[
    NAME,
    Spec { format: "name", ..Spec::new(STRING, "Attacher", "Driver that attaches") },
    Spec::new(STRING, "PV", "Volume to attach"),
    Spec::new(STRING, "Node", "Node to attach to"),
    Spec::new(BOOLEAN, "Attached", "Whether the volume is attached"),
    AGE,
];
const CSI_NODE: &[Spec] = &[NAME, Spec::new(INTEGER, "Drivers", "Number of drivers on the node"), AGE];
const CSI_DRIVER: &[Spec] = &[
    NAME,
    Spec::new(BOOLEAN, "AttachRequired", "Whether volumes are attached"),
    Spec::new(BOOLEAN, "PodInfoOnMount", "Whether the driver is told about the pod"),
    Spec::new(BOOLEAN, "StorageCapacity", "Whether capacity is considered"),
    Spec::new(STRING, "TokenRequests", "Audiences of the tokens the driver gets"),
    Spec::new(BOOLEAN, "RequiresRepublish", "Whether volumes are published repeatedly"),
    Spec::new(STRING, "Modes", "Kinds of volumes"),
    AGE,
];
const CONTROLLER_REVISION: &[Spec] = &[
    NAME,
    Spec::new(STRING, "Controller", "Controller of the object"),
    Spec::new(STRING, "Revision", "Number of the revision"),
    AGE,
];
const RESOURCE_QUOTA: &[Spec] = &[
    NAME,
    Spec::new(STRING, "Request", "Requests that are used, of those allowed"),
    Spec::new(STRING, "Limit", "Limits that are used, of those allowed"),
    AGE,
];
const PRIORITY_CLASS: &[Spec] = &[
    NAME,
    Spec::new(INTEGER, "Value", "Priority of the pods"),
    Spec::new(BOOLEAN, "Global-Default", "Whether pods without a class get this one"),
    AGE,
    Spec::new(STRING, "PreemptionPolicy", "Whether pods of this class evict others"),
];
const RUNTIME_CLASS: &[Spec] = &[NAME, Spec::new(STRING, "Handler", "Handler in the container runtime"), AGE];
const ENDPOINT_SLICE: &[Spec] = &[
    NAME,
    Spec::new(STRING, "AddressType", "Type of the addresses"),
    Spec::new(STRING, "Ports", "Ports of the endpoints"),
    Spec::new(STRING, "Endpoints", "Addresses of the endpoints"),
    AGE,
];
const WEBHOOKS: &[Spec] = &[NAME, Spec::new(INTEGER, "Webhooks", "Number of webhooks"), AGE];
const VAP: &[Spec] = &[
    NAME,
    Spec::new(INTEGER, "Validations", "Number of validations"),
    Spec::new(STRING, "ParamKind", "Kind of the parameters"),
    AGE,
];
const VAP_BINDING: &[Spec] = &[
    NAME,
    Spec::new(STRING, "PolicyName", "Policy that is bound"),
    Spec::new(STRING, "ParamRef", "Parameters of the policy"),
    AGE,
];
const SERVICE_CIDR: &[Spec] = &[NAME, Spec::new(STRING, "CIDRs", "Address ranges"), AGE];
const IP_ADDRESS: &[Spec] = &[NAME, Spec::new(STRING, "ParentRef", "Who uses the address")];
const API_SERVICE: &[Spec] = &[
    NAME,
    Spec::new(STRING, "Service", "Who serves the version"),
    Spec::new(STRING, "Available", "Whether it is served"),
    AGE,
];
