//! Controllers and their runtime (informers, work queues, leader election): read, ask `decide`, write. Clusters are
//! reached only through `kube::Client`.

pub mod binding;
pub mod binding_status;
pub mod cache;
pub mod clients;
pub mod cluster;
pub mod cluster_status;
pub mod credentials;
pub mod ctx;
pub mod dependencies;
pub mod detector;
pub mod discovery;
pub mod events;
pub mod execution;
pub mod failover;
pub mod gates;
pub mod leader_election;
pub mod member_client;
pub mod members;
pub mod metrics;
pub mod namespaces;
pub mod pace;
pub mod policies;
pub mod policy_status;
pub mod rebalancer;
pub mod rest;
pub mod runtime;
pub mod scheduler;
pub mod snapshot;
pub mod start;
pub mod taint_policies;
pub mod work_status;
