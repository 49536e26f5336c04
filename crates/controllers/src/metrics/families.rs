//! The table of metric families: name, help, type. Names and labels are Karmada's (C7).

/// One metric.
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// What it says.
    pub help: &'static str,
    /// How it is printed.
    pub shape: Shape,
}

/// How a metric is printed.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Durations in seconds, sorted into buckets.
    Histogram(&'static [f64]),
}

/// From one millisecond, doubling: the buckets Karmada uses for its own work.
const DOUBLING: Shape =
    Shape::Histogram(&[0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048]);

const fn family(name: &'static str, shape: Shape, help: &'static str) -> Family {
    Family { name, help, shape }
}

/// What is counted as it happens, sorted by name.
pub const FAMILIES: &[Family] = &[
    family("binding_sync_work_duration_seconds", DOUBLING, "Time to bring the Works of a binding in line."),
    family("cluster_sync_status_duration_seconds", DOUBLING, "Time to ask a cluster how it is."),
    family("create_resource_to_cluster", Shape::Counter, "Objects created in members."),
    family("delete_resource_from_cluster", Shape::Counter, "Objects deleted in members."),
    family(
        "events_dropped_total",
        Shape::Counter,
        "Events that were not written, because their object had too many or too many were waiting.",
    ),
    family("eviction_kind_total", Shape::Counter, "Evictions by cluster and kind."),
    family("eviction_processing_latency_seconds", DOUBLING, "Time to write an eviction."),
    family("eviction_processing_total", Shape::Counter, "Evictions that were written."),
    family(
        "karmada_scheduler_e2e_scheduling_duration_seconds",
        DOUBLING,
        "Time to place a binding and write it.",
    ),
    family(
        "karmada_scheduler_queue_incoming_bindings_total",
        Shape::Counter,
        "Bindings to be placed, by what brought them up.",
    ),
    family("karmada_scheduler_schedule_attempts_total", Shape::Counter, "Attempts to place a binding."),
    family(
        "karmada_scheduler_scheduling_algorithm_duration_seconds",
        DOUBLING,
        "Time to decide on a placement.",
    ),
    family("policy_apply_attempts_total", Shape::Counter, "Attempts to make a binding follow its policy."),
    family("policy_preemption_total", Shape::Counter, "Templates that one policy took from another."),
    family("reconcile_panics_total", Shape::Counter, "Reconciles that panicked; their keys are tried again."),
    family("resource_apply_policy_duration_seconds", DOUBLING, "Time to write the binding of a template."),
    family("resource_match_policy_duration_seconds", DOUBLING, "Time to find the policy of a template."),
    family("task_panics_total", Shape::Counter, "Panics outside of reconciles, by task."),
    family("update_resource_to_cluster", Shape::Counter, "Objects updated in members."),
    family("work_sync_workload_duration_seconds", DOUBLING, "Time to bring one Work to its member."),
];

/// What is read when it is asked for.
pub const WORKQUEUE_DEPTH: Family = family("workqueue_depth", Shape::Gauge, "Keys that wait for a worker.");
/// Keys that wait for their time.
pub const WORKQUEUE_DELAYED: Family = family(
    "workqueue_delayed",
    Shape::Gauge,
    "Keys that wait for their time, after a failure or by appointment.",
);
/// Keys in the hands of workers.
pub const WORKQUEUE_WORKING: Family =
    family("workqueue_working", Shape::Gauge, "Keys in the hands of workers.");
/// Additions.
pub const WORKQUEUE_ADDS: Family =
    family("workqueue_adds_total", Shape::Counter, "How often a key was added.");
/// Failures.
pub const WORKQUEUE_RETRIES: Family =
    family("workqueue_retries_total", Shape::Counter, "How often a key came back after a failure.");
/// Failures that last.
pub const WORKQUEUE_FAILING: Family = family(
    "workqueue_failing",
    Shape::Gauge,
    "Keys that have failed again and again, and nothing else since.",
);
/// Eviction queue.
pub const EVICTION_QUEUE_DEPTH: Family =
    family("eviction_queue_depth", Shape::Gauge, "Bindings that wait to be judged for eviction.");
/// Whether we lead, as Kubernetes' own controllers tell it.
pub const LEADER: Family = family(
    "leader_election_master_status",
    Shape::Gauge,
    "Whether this replica leads (1) or another one may (0).",
);
/// State of clusters.
pub const CLUSTER_GAUGES: [Family; 9] = [
    family("cluster_ready_state", Shape::Gauge, "Whether the cluster is ready (1) or not (0)."),
    family("cluster_node_number", Shape::Gauge, "Nodes of the cluster."),
    family("cluster_ready_node_number", Shape::Gauge, "Ready nodes of the cluster."),
    family("cluster_memory_allocatable_bytes", Shape::Gauge, "Memory that pods can have."),
    family("cluster_cpu_allocatable_number", Shape::Gauge, "CPUs that pods can have."),
    family("cluster_pod_allocatable_number", Shape::Gauge, "Pods that there can be."),
    family("cluster_memory_allocated_bytes", Shape::Gauge, "Memory that pods have."),
    family("cluster_cpu_allocated_number", Shape::Gauge, "CPUs that pods have."),
    family("cluster_pod_allocated_number", Shape::Gauge, "Pods that there are."),
];
