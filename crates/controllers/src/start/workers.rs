//! Starts the workers of each queue. A reconcile that panics is counted, logged and recorded as an Event on its object,
//! and its key is requeued.

use supervise::Panic;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Starter, regarding};
use crate::cache::WorkKey;
use crate::ctx::Ctx;
use crate::events::{EventType, Regarding};
use crate::runtime::run;
use crate::{
    binding, binding_status, clients, cluster, cluster_status, credentials, dependencies, detector,
    event_writer, execution, failover, namespaces, policies, policy_status, rebalancer, scheduler,
    taint_policies,
};

/// Workers per controller.
const WORKERS: usize = 8;
/// Workers that renew credentials: members that do not answer must not delay the others for long.
const CREDENTIAL_WORKERS: usize = 4;

/// The component that Events about panics name.
const COMPONENT: &str = "longshore-controllers";
/// Reason of Events about panics.
const PANICKED: &str = "ReconcilePanicked";

impl Starter {
    /// Starts the workers of every queue that exists once.
    pub(super) fn start_workers(&self) -> Vec<JoinHandle<()>> {
        let (queues, stop) = (&self.ctx.queues, &self.stop);
        let mut workers = Vec::new();
        macro_rules! controller {
            ($name:literal, $queue:expr, $workers:expr, $about:path, $reconcile:path) => {{
                let (ctx, recorder) = (self.ctx.clone(), self.ctx.clone());
                workers.extend(run(
                    $name,
                    &$queue,
                    $workers,
                    stop,
                    move |key, panic| {
                        recorder.supervisor.reconcile_panicked($name, key, panic);
                        record_panic(&recorder, $about(&recorder, key));
                    },
                    move |key| {
                        let ctx = ctx.clone();
                        async move {
                            ctx.supervisor.inject($name, &key);
                            $reconcile(&ctx, &key).await
                        }
                    },
                ));
            }};
        }
        controller!("detector", queues.detector, WORKERS, regarding::template, detector::reconcile);
        controller!("scheduler", queues.scheduler, WORKERS, regarding::binding, scheduler::reconcile);
        controller!("binding", queues.binding, WORKERS, regarding::binding, binding::reconcile);
        controller!(
            "binding-status",
            queues.binding_status,
            WORKERS,
            regarding::binding,
            binding_status::reconcile
        );
        controller!("clients", queues.clients, 1, regarding::cluster, clients::reconcile);
        controller!(
            "credentials",
            queues.credentials,
            CREDENTIAL_WORKERS,
            regarding::cluster,
            credentials::reconcile
        );
        controller!("cluster", queues.cluster, 1, regarding::cluster, cluster::reconcile);
        controller!(
            "cluster-status",
            queues.cluster_status,
            WORKERS,
            regarding::cluster,
            cluster_status::reconcile
        );
        controller!("policies", queues.policies, 1, regarding::policy, policies::reconcile);
        controller!(
            "dependencies",
            queues.dependencies,
            WORKERS,
            regarding::binding,
            dependencies::reconcile
        );
        controller!("attachments", queues.attachments, WORKERS, regarding::template, dependencies::attach);
        controller!("failover", queues.failover, 1, regarding::binding, failover::reconcile);
        controller!("taints", queues.taints, 1, regarding::cluster, taint_policies::reconcile);
        controller!("rebalancer", queues.rebalancer, 1, regarding::rebalancer, rebalancer::reconcile);
        controller!("policy-status", queues.policy_status, 1, regarding::policy, policy_status::reconcile);
        controller!("events", queues.events, 1, regarding::nothing, event_writer::reconcile);
        controller!("namespaces", queues.namespaces, 1, regarding::namespace, namespaces::reconcile);
        workers
    }

    /// Starts the workers that write to one member.
    pub(super) fn start_execution(&self, cluster: &str, stop: &CancellationToken) -> Vec<JoinHandle<()>> {
        let (ctx, recorder) = (self.ctx.clone(), self.ctx.clone());
        let queue = ctx.queues.execution.of(cluster);
        let panicked = move |key: &WorkKey, panic: &Panic| {
            recorder.supervisor.reconcile_panicked("execution", key, panic);
            record_panic(&recorder, regarding::work(&recorder, key));
        };
        run("execution", &queue, WORKERS, stop, panicked, move |key| {
            let ctx = ctx.clone();
            async move {
                ctx.supervisor.inject("execution", &key);
                execution::reconcile(&ctx, &key).await
            }
        })
    }
}

/// Records an Event about an internal error on the user's object. The panic message may contain others' data, so it
/// goes to the log only.
fn record_panic(ctx: &Ctx, about: Option<Regarding>) {
    let message = "an internal error (panic) stopped work on this object; it is tried again. \
                   The log of the controllers says where it happened";
    ctx.record_event(about, COMPONENT, EventType::Warning, PANICKED, message);
}
