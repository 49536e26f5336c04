//! Wires the controllers: watches feed the informer cache, its changes feed the work queues, and each queue has its
//! controller. The only file that spawns tasks besides `runtime`.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::{Binding, ObjectMeta, kinds, names};
use decide::{PolicyKey, TemplateKey};
use serde_json::Value;
use supervise::{Panic, Recovered as _, catch, keep_running};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::cache::{WorkKey, WorkNews, binding_id, binding_key, binding_of_work, kinds_of};
use crate::ctx::Ctx;
use crate::discovery::TemplateKind;
use crate::rest::Collection;
use crate::runtime::{Priority, Reflected, Seen, Watched, reflect};
use crate::{dependencies, namespaces, policy_status, scheduler};

mod kinds_of_templates;
mod members;
mod policy_side;
mod regarding;
mod workers;

use kinds_of_templates::Followed;

/// How long tasks may take to end.
const SHUT_DOWN_PATIENCE: Duration = Duration::from_secs(2);

/// Running controllers.
pub struct Controllers {
    stop: CancellationToken,
    tasks: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Controllers {
    /// Stops every task and waits for it.
    pub async fn shut_down(self) {
        self.stop.cancel();
        let tasks = std::mem::take(&mut *self.tasks.lock().recovered());
        let patience = tokio::time::Instant::now() + SHUT_DOWN_PATIENCE;
        for mut task in tasks {
            // A task that panicked has said so already. One that hangs on a member is given up, as a crash would.
            if tokio::time::timeout_at(patience, &mut task).await.is_err() {
                task.abort();
                let _ = task.await;
            }
        }
    }
}

/// What all the tasks that are being started share.
#[derive(Clone)]
struct Starter {
    ctx: Ctx,
    stop: CancellationToken,
    tasks: Arc<Mutex<Vec<JoinHandle<()>>>>,
    /// How many informers have not synced yet; controllers start when it is zero.
    cold: Arc<Watched<usize>>,
    /// Kinds that are followed, and what stops that.
    known: Arc<Mutex<BTreeMap<TemplateKind, Followed>>>,
    /// Whether the kinds have been found once.
    discovered: Arc<AtomicBool>,
    /// Notified when a CRD changed.
    definitions: Arc<Notify>,
    /// What runs per member.
    members: Arc<Mutex<BTreeMap<String, members::Running>>>,
}

/// Starts every controller.
pub fn start(ctx: Ctx) -> Controllers {
    let stop = CancellationToken::new();
    let tasks = Arc::new(Mutex::new(Vec::new()));
    let starter = Starter {
        ctx,
        stop: stop.clone(),
        tasks: tasks.clone(),
        // Discovery itself counts as one.
        cold: Arc::new(Watched::new(1)),
        known: Arc::default(),
        discovered: Arc::default(),
        definitions: Arc::default(),
        members: Arc::default(),
    };
    starter.watch_control_plane();
    starter.watch_policy_side();
    let discovering = starter.clone();
    starter.keep("discovery", stop.clone(), move || discovering.clone().discover());
    starter.spawn("start", starter.clone().work_when_warm());
    Controllers { stop, tasks }
}

impl Starter {
    /// Runs a task that cannot be started again: if it panics, this process cannot go on.
    fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let supervisor = self.ctx.supervisor.clone();
        self.take_task(tokio::spawn(async move {
            if let Err(panic) = catch(task).await {
                supervisor.fail(name, &panic);
            }
        }));
    }

    /// Runs a task until `stop`; one that panics or ends is started again.
    fn keep<Running>(
        &self,
        name: &'static str,
        stop: CancellationToken,
        make: impl Fn() -> Running + Send + 'static,
    ) where
        Running: Future<Output = ()> + Send,
    {
        let supervisor = self.ctx.supervisor.clone();
        self.take_task(tokio::spawn(async move {
            let panicked = |panic: &Panic, delay: Duration| supervisor.task_panicked(name, &delay, panic);
            keep_running(name, &stop, panicked, make).await;
        }));
    }

    fn take_task(&self, task: JoinHandle<()>) {
        let mut tasks = self.tasks.lock().recovered();
        tasks.retain(|task| !task.is_finished());
        tasks.push(task);
    }

    /// Follows a collection of the control plane.
    fn follow<T: Reflected>(
        &self,
        collection: Collection,
        kind: (&str, &str),
        sink: impl FnMut(Seen<T>) + Send + 'static,
    ) {
        let followed =
            Followed { stop: self.stop.clone(), ended: CancellationToken::new(), indispensable: true };
        self.follow_until(followed, collection, kind, sink);
    }

    /// The same, until `stop`; a collection that stops before it has synced no longer blocks the start.
    fn follow_until<T: Reflected>(
        &self,
        Followed { stop, ended, indispensable }: Followed,
        collection: Collection,
        kind: (&str, &str),
        mut sink: impl FnMut(Seen<T>) + Send + 'static,
    ) {
        self.cold.change(|cold| *cold += 1);
        let complete = Arc::new(AtomicBool::new(false));
        let cold = self.cold.clone();
        let warmed = move |complete: &AtomicBool| {
            if !complete.swap(true, Ordering::AcqRel) {
                cold.change(|cold| *cold -= 1);
            }
        };
        let fill = (kind.0.to_owned(), kind.1.to_owned());
        let (rest, supervisor) = (self.ctx.control.clone(), self.ctx.supervisor.clone());
        self.spawn("watch", async move {
            let tell = |seen: Seen<T>| match seen {
                Seen::Complete => warmed(&complete),
                // One kind that cannot be listed, because its conversion fails for instance, must not stop the others.
                Seen::Refused if !indispensable => warmed(&complete),
                seen => sink(seen),
            };
            reflect(rest, collection, fill, "", stop, &supervisor, tell).await;
            warmed(&complete);
            ended.cancel();
        });
    }

    fn watch_control_plane(&self) {
        for kind in [&kinds::PROPAGATION_POLICY, &kinds::CLUSTER_PROPAGATION_POLICY] {
            self.follow_policies(kind);
        }
        let others = [
            &kinds::OVERRIDE_POLICY,
            &kinds::CLUSTER_OVERRIDE_POLICY,
            &kinds::ROLLOUT_POLICY,
            &kinds::CLUSTER_ROLLOUT_POLICY,
        ];
        for kind in others {
            self.follow_rules(kind);
        }
        for kind in [&kinds::RESOURCE_BINDING, &kinds::CLUSTER_RESOURCE_BINDING] {
            self.follow_bindings(kind);
        }
        self.follow_works();
        self.follow_clusters();
    }

    fn follow_policies(&self, kind: &'static kinds::Kind) {
        let ctx = self.ctx.clone();
        let api_version = kind.api_version();
        self.follow(Collection::of(kind, ""), (&kind.api_version(), kind.kind), move |seen| {
            let (touched, namespace, name) = match seen {
                // A status that we wrote ourselves must not bring up every template again.
                Seen::Is(object) if policy_side::is_known(&ctx, kind, &object) => return,
                Seen::Is(object) => {
                    let (namespace, name) = place(&object);
                    (ctx.cache.put(*object), namespace, name)
                }
                Seen::Gone(namespace, name) => {
                    (ctx.cache.remove(&api_version, kind.kind, &namespace, &name), namespace, name)
                }
                Seen::Complete | Seen::Refused => return,
            };
            ctx.queues.look_at(touched, Priority::Resync);
            let key = PolicyKey { namespace, name };
            policy_status::look_later(&ctx, key.clone());
            ctx.queues.policies.add(key, Priority::User);
        });
    }

    /// Override and rollout policies: the templates they touch are enqueued, and their Works too.
    fn follow_rules(&self, kind: &'static kinds::Kind) {
        let ctx = self.ctx.clone();
        let api_version = kind.api_version();
        self.follow(Collection::of(kind, ""), (&kind.api_version(), kind.kind), move |seen| {
            let touched = match seen {
                Seen::Is(object) => ctx.cache.put(*object),
                Seen::Gone(namespace, name) => ctx.cache.remove(&api_version, kind.kind, &namespace, &name),
                Seen::Complete | Seen::Refused => return,
            };
            if kind.kind == kinds::CLUSTER_OVERRIDE_POLICY.kind {
                namespaces::look_at_all(&ctx);
            }
            touched.iter().for_each(|key| ctx.queues.works.add(key.binding(), Priority::Resync));
            ctx.queues.look_at(touched, Priority::Resync);
        });
    }

    fn follow_bindings(&self, kind: &'static kinds::Kind) {
        let ctx = self.ctx.clone();
        self.follow(Collection::of(kind, ""), (&kind.api_version(), kind.kind), move |seen| match seen {
            Seen::Is(binding) => {
                let binding: Binding = *binding;
                let key = binding_key(&binding.metadata);
                ctx.queues.templates.add(TemplateKey::of(&binding), Priority::User);
                let generation = binding.metadata.generation;
                let before = ctx.cache.put_binding(key.clone(), binding);
                match before.as_ref().map(|before| before.metadata.generation) {
                    None => scheduler::came(&ctx, "BindingAdd"),
                    Some(before) if before != generation => scheduler::came(&ctx, "BindingUpdate"),
                    Some(_) => {}
                }
                let after = ctx.cache.binding(&key);
                dependencies::moved(&ctx, before.as_deref(), after.as_deref());
                let id = |binding: &Option<Arc<Binding>>| {
                    binding.as_ref().map(|binding| binding_id(&binding.metadata).to_owned())
                };
                if let Some(before) = before.as_ref().filter(|_| id(&before) != id(&after)) {
                    look_at_works(&ctx, before);
                }
                ctx.queues.look_at_binding(&key, Priority::User);
            }
            Seen::Gone(namespace, name) => {
                let key = decide::BindingKey { namespace, name };
                if let Some(binding) = ctx.cache.remove_binding(&key) {
                    look_at_works(&ctx, &binding);
                    dependencies::moved(&ctx, Some(&binding), None);
                    ctx.queues.templates.add(TemplateKey::of(&binding), Priority::User);
                }
            }
            Seen::Complete | Seen::Refused => {}
        });
    }

    fn follow_works(&self) {
        let ctx = self.ctx.clone();
        let starter = self.clone();
        let kind = &kinds::WORK;
        self.follow(Collection::of(kind, ""), (&kind.api_version(), kind.kind), move |seen| match seen {
            Seen::Is(work) => {
                let work: WorkNews = *work;
                let Some(key) = work_key(&work.metadata) else { return };
                starter.start_member(&key.cluster, kinds_of(&work));
                let changed = ctx.cache.put_work(key.clone(), &work);
                if changed {
                    ctx.queues.execution.add(key, Priority::User);
                }
                if let Some(binding) = binding_of_work(&work.metadata) {
                    ctx.queues.look_at_status(binding.clone());
                    if changed || ctx.cache.moving().has(&binding) {
                        ctx.queues.works.add_debounced(binding);
                    }
                }
            }
            Seen::Gone(namespace, name) => {
                let Some(cluster) = names::cluster_of_execution_namespace(&namespace) else { return };
                let key = WorkKey { cluster: cluster.to_owned(), name };
                let binding = ctx.cache.binding_of(&key);
                if let Some(binding) = &binding {
                    ctx.queues.look_at_binding(binding, Priority::User);
                }
                // A namespace's is brought back by nothing else.
                if let Some(namespace) = namespaces::named_by(&key) {
                    ctx.queues.namespaces.add(namespace.to_owned(), Priority::Resync);
                }
                ctx.cache.remove_work(&key);
                ctx.queues.execution.add(key, Priority::Resync);
                // What it needed there may go now.
                if let Some(binding) = binding.filter(|_| !ctx.cache.moving().is_empty()) {
                    dependencies::look_at_needed(&ctx, &binding);
                }
            }
            Seen::Complete | Seen::Refused => {}
        });
    }

    fn follow_clusters(&self) {
        let ctx = self.ctx.clone();
        let starter = self.clone();
        let kind = &kinds::CLUSTER;
        self.follow(Collection::of(kind, ""), (&kind.api_version(), kind.kind), move |seen| {
            let name = match seen {
                Seen::Is(object) => {
                    let (_, name) = place(&object);
                    ctx.queues.taints.add(name.clone(), Priority::User);
                    let before = ctx.cache.cluster(&name).map(|cluster| cluster_facts(&cluster));
                    ctx.cache.put(*object);
                    let after = ctx.cache.cluster(&name).map(|cluster| cluster_facts(&cluster));
                    if before == after {
                        return;
                    }
                    starter.start_member(&name, Vec::new());
                    name
                }
                Seen::Gone(_, name) => {
                    ctx.cache.remove_cluster(&name);
                    starter.stop_member(&name);
                    name
                }
                Seen::Complete | Seen::Refused => return,
            };
            // What an override policy means may depend on the cluster's labels.
            let overrides = !ctx.cache.snapshot().overrides.is_empty();
            for key in ctx.cache.binding_keys() {
                ctx.queues.failover.add(key.clone(), Priority::Resync);
                if overrides {
                    ctx.queues.works.add(key.clone(), Priority::Resync);
                }
                ctx.queues.placements.add(key, Priority::Resync);
                scheduler::came(&ctx, "ClusterChanged");
            }
            ctx.cache
                .works_in(&name)
                .into_iter()
                .for_each(|key| ctx.queues.execution.add(key, Priority::Resync));
            namespaces::look_at_all(&ctx);
            ctx.queues.clusters.add(name.clone(), Priority::User);
            ctx.queues.clients.add(name.clone(), Priority::User);
            ctx.queues.cluster_status.add(name, Priority::User);
        });
    }

    /// Waits until everything has been listed once; false if it is too late for that.
    async fn warm(&self, stop: &CancellationToken) -> bool {
        tokio::select! {
            biased;
            () = stop.cancelled() => false,
            () = self.cold.until(|cold| (*cold == 0).then_some(())) => true,
        }
    }

    /// Waits until this replica leads; false if `stop` comes first. A standby keeps its cache warm and does nothing
    /// else, so that it can take over at once.
    async fn leads(&self, stop: &CancellationToken) -> bool {
        tokio::select! {
            biased;
            () = stop.cancelled() => false,
            () = self.ctx.control.may_write() => true,
        }
    }

    /// Lets the controllers work as soon as nothing is missing.
    async fn work_when_warm(self) {
        if !self.warm(&self.stop).await {
            return;
        }
        let ctx = &self.ctx;
        ctx.cache.note_complete();
        if !self.leads(&self.stop).await {
            return;
        }
        policy_status::count_all(ctx);
        let workers = self.start_workers();
        self.tasks.lock().recovered().extend(workers);
    }
}

/// Enqueues the Works of a binding that is gone: a Work that was created at that moment has no owner.
fn look_at_works(ctx: &Ctx, binding: &Binding) {
    ctx.cache.works_of(binding).into_iter().for_each(|key| ctx.queues.execution.add(key, Priority::Resync));
}

/// What of a cluster decisions depend on: two states with the same facts lead to the same decisions.
#[derive(PartialEq)]
struct ClusterFacts {
    generation: i64,
    deleting: bool,
    labels: BTreeMap<String, String>,
    ready: Option<api::ConditionStatus>,
    /// A digest of the kinds it has.
    kinds: u64,
}

fn cluster_facts(cluster: &api::Cluster) -> ClusterFacts {
    let metadata = &cluster.metadata;
    let mut kinds = DefaultHasher::new();
    for one in &cluster.status.api_enablements {
        one.group_version.hash(&mut kinds);
        one.resources.iter().for_each(|resource| resource.kind.hash(&mut kinds));
    }
    ClusterFacts {
        generation: metadata.generation,
        deleting: metadata.deletion_timestamp.is_some(),
        labels: metadata.labels.clone(),
        ready: decide::conditions::status(&cluster.status.conditions, api::cluster::READY),
        kinds: kinds.finish(),
    }
}

fn place(object: &Value) -> (String, String) {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

fn work_key(metadata: &ObjectMeta) -> Option<WorkKey> {
    let cluster = names::cluster_of_execution_namespace(&metadata.namespace)?.to_owned();
    Some(WorkKey { cluster, name: metadata.name.clone() })
}
