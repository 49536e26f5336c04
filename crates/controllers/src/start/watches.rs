//! The wiring table: one row per watched kind, with how the informer cache takes a change and which controllers the
//! change wakes. Each controller has one queue (`queues`); a row says with which keys and how soon. The functions that a
//! row names are in `changes`.

use api::kinds::{self, Kind};
use api::{Binding, ClusterTaintPolicy};
use serde_json::Value;

use super::Starter;
use super::changes::{
    SnapshotChange, affected_bindings, affected_templates, binding, cluster, policy, template, uncached, work,
};
use super::informer::{CacheChange, Source};
use super::wake::Wake;
use super::wake::When::{After, Debounced, DebouncedFor, Resync, User};
use crate::cache::WorkSummary;
use crate::reflector::PartialObjectMetadata;
use crate::{binding_status, policy_status, work_status};

/// One row: what happens when an object of these kinds changes.
pub(super) struct Row<T: 'static, Change: 'static> {
    /// The kinds.
    pub kinds: &'static [&'static Kind],
    /// How the cache takes a change. `T` is the part of the object that is decoded.
    pub cache: CacheChange<T, Change>,
    /// Whom the change wakes: the queue, the keys, how soon.
    pub wakes: &'static [Wake<Change>],
}

const PROPAGATION_POLICIES: Row<Value, SnapshotChange> = Row {
    kinds: &[&kinds::PROPAGATION_POLICY, &kinds::CLUSTER_PROPAGATION_POLICY],
    cache: policy::cache_propagation_policy,
    wakes: &[
        Wake::Detector(affected_templates, Resync),
        Wake::PolicyStatus(policy::policy, After(policy_status::DEBOUNCE)),
        Wake::Policies(policy::policy, User),
    ],
};

const OVERRIDE_AND_ROLLOUT_POLICIES: Row<Value, SnapshotChange> = Row {
    kinds: &[&kinds::OVERRIDE_POLICY, &kinds::ROLLOUT_POLICY, &kinds::CLUSTER_ROLLOUT_POLICY],
    cache: policy::cache_policy,
    wakes: &[Wake::Binding(affected_bindings, Resync), Wake::Detector(affected_templates, Resync)],
};

const CLUSTER_OVERRIDE_POLICIES: Row<Value, SnapshotChange> = Row {
    kinds: &[&kinds::CLUSTER_OVERRIDE_POLICY],
    cache: policy::cache_policy,
    wakes: &[
        Wake::Binding(affected_bindings, Resync),
        Wake::Detector(affected_templates, Resync),
        Wake::Namespaces(policy::all_namespaces, Resync),
    ],
};

const BINDINGS: Row<Binding, binding::Change> = Row {
    kinds: &[&kinds::RESOURCE_BINDING, &kinds::CLUSTER_RESOURCE_BINDING],
    cache: binding::cache,
    wakes: &[
        Wake::Detector(binding::template, User),
        Wake::Scheduler(binding::binding, User),
        Wake::Binding(binding::binding, User),
        Wake::BindingStatus(binding::binding, DebouncedFor(binding_status::DEBOUNCE)),
        Wake::Failover(binding::binding, User),
        Wake::Dependencies(binding::binding_with_dependencies, User),
        Wake::Attachments(binding::dependencies, User),
        Wake::Attachments(binding::template_if_depended_on, Resync),
        Wake::Execution(binding::abandoned_works, Resync),
        Wake::Metric(binding::count_incoming),
    ],
};

const WORKS: Row<WorkSummary, work::Change> = Row {
    kinds: &[&kinds::WORK],
    cache: work::cache,
    wakes: &[
        Wake::MemberTasks(work::start_member),
        Wake::Execution(work::work_if_changed, User),
        Wake::Execution(work::work_if_deleted, Resync),
        Wake::BindingStatus(work::binding, DebouncedFor(binding_status::DEBOUNCE)),
        Wake::Binding(work::binding_if_changed_or_moving, Debounced),
        Wake::Binding(work::binding_if_deleted, User),
        Wake::Scheduler(work::binding_if_deleted, User),
        Wake::Failover(work::binding_if_deleted, User),
        Wake::Binding(work::moving_dependencies_if_deleted, Resync),
        Wake::Namespaces(work::namespace_if_deleted, Resync),
    ],
};

const CLUSTERS: Row<Value, cluster::Change> = Row {
    kinds: &[&kinds::CLUSTER],
    cache: cluster::cache,
    wakes: &[
        Wake::MemberTasks(cluster::start_or_stop_member),
        Wake::Taints(cluster::cluster_if_applied, User),
        Wake::Cluster(cluster::cluster_if_changed, User),
        Wake::Clients(cluster::cluster_if_changed, User),
        Wake::ClusterStatus(cluster::cluster_if_changed, User),
        Wake::Scheduler(cluster::all_bindings_if_changed, Resync),
        Wake::Failover(cluster::all_bindings_if_changed, Resync),
        Wake::Binding(cluster::overridden_or_moving_bindings_if_changed, Resync),
        Wake::Execution(cluster::works_if_changed, Resync),
        Wake::Namespaces(cluster::all_namespaces_if_changed, Resync),
        Wake::Metric(cluster::count_incoming),
    ],
};

const CLUSTER_TAINT_POLICIES: Row<ClusterTaintPolicy, ()> = Row {
    kinds: &[&kinds::CLUSTER_TAINT_POLICY],
    cache: policy::cache_taint_policy,
    wakes: &[Wake::Taints(policy::all_clusters, Resync)],
};

const REBALANCERS: Row<PartialObjectMetadata, uncached::Change> = Row {
    kinds: &[&kinds::WORKLOAD_REBALANCER],
    cache: uncached::cache,
    wakes: &[Wake::Rebalancer(uncached::name_if_applied, User)],
};

/// CustomResourceDefinitions, which are not among our kinds.
const DEFINITIONS: Row<PartialObjectMetadata, uncached::Change> =
    Row { kinds: &[], cache: uncached::cache, wakes: &[Wake::Discovery] };

/// Templates, of every kind that discovery finds.
pub(super) const TEMPLATES: Row<Value, SnapshotChange> = Row {
    kinds: &[],
    cache: template::cache,
    wakes: &[
        Wake::Detector(affected_templates, User),
        Wake::Binding(affected_bindings, User),
        Wake::BindingStatus(template::bindings_with_stale_status, Resync),
        Wake::Namespaces(template::affected_namespaces, User),
        Wake::Clients(template::clusters_with_secret, User),
        Wake::Credentials(template::clusters_with_impersonator_secret, Resync),
    ],
};

/// Objects in members that Works brought there, of every kind that they bring. They are not cached.
pub(super) const MEMBER_OBJECTS: &[Wake<work_status::Change>] = &[
    Wake::Execution(work_status::work_if_applied, Debounced),
    Wake::Execution(work_status::work_if_deleted, Resync),
    Wake::Execution(work_status::works_without_object, Resync),
];

impl Starter {
    /// Starts the watches of every kind that needs no discovery.
    pub(super) fn watch_control_plane(&self) {
        self.watch(&PROPAGATION_POLICIES);
        self.watch(&OVERRIDE_AND_ROLLOUT_POLICIES);
        self.watch(&CLUSTER_OVERRIDE_POLICIES);
        self.watch(&BINDINGS);
        self.watch(&WORKS);
        self.watch(&CLUSTERS);
        self.watch(&CLUSTER_TAINT_POLICIES);
        self.watch(&REBALANCERS);
        self.watch_source(Source::definitions(), &DEFINITIONS);
    }
}
