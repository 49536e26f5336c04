//! `longshore suspend` and `longshore resume`: the `suspension` of a policy, or of one template through a rollout
//! policy of its own (U7). `resume` shows first what it will dispatch.

use anyhow::{Context as _, Result};
use api::{Suspension, kinds, names};
use controllers::rest::{Collection, Error};
use decide::snapshot::Change;
use plane::reports::Report;
use serde_json::{Value, json};

use crate::confirmation::{Confirmation, ConfirmationFlags, approving};
use crate::connection::{Connection, Control};
use crate::kinds::{Kinds, Target};
use crate::plan::{Planned, Request, merged, planned};
use crate::suspend::released::released;
use crate::suspend::suspension_change::{SuspensionChange, change_suspension, is_same};
use crate::terminal_text::Paint;
use crate::wait::Wait;
use crate::{Hint, members, output, plan};

mod released;
mod suspension_change;

/// How often a write is retried after a conflict.
const CONFLICT_RETRIES_MAX: usize = 5;

/// Arguments of `longshore suspend`.
#[derive(clap::Args)]
pub struct Suspend {
    #[command(flatten)]
    what: What,
    #[command(flatten)]
    wait: Wait,
}

/// Arguments of `longshore resume`.
#[derive(clap::Args)]
pub struct Resume {
    #[command(flatten)]
    what: What,
    #[command(flatten)]
    confirmation: ConfirmationFlags,
    #[command(flatten)]
    wait: Wait,
}

#[derive(clap::Args)]
struct What {
    /// Template: KIND/NAME or KIND NAME
    #[arg(value_name = "KIND/NAME", num_args = 1..=2, required_unless_present = "policy", conflicts_with = "policy")]
    template: Vec<String>,
    /// All templates of a policy: NAME, pp/NAME or cpp/NAME
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Cluster; repeatable [default: all clusters]
    #[arg(long, short = 'C', value_name = "NAME", value_delimiter = ',')]
    cluster: Vec<String>,
    #[command(flatten)]
    connection: Connection,
}

/// An object with a change_suspension, as it is now.
struct SuspensionHolder {
    /// What is printed.
    printed: String,
    collection: Collection,
    name: String,
    /// None if it does not exist yet.
    object: Option<Value>,
    /// What it would be made of.
    draft: Value,
    /// It exists for one template only and goes when it holds nothing.
    is_ours: bool,
}

/// Holds a policy or a template back.
pub async fn suspend(arguments: &Suspend) -> Result<()> {
    let what = &arguments.what;
    let (control, holder) = find(what).await?;
    check_clusters(&control, &what.cluster).await?;
    let after = change_suspension(holder.suspension()?.as_ref(), SuspensionChange::Suspend, &what.cluster)?;
    if is_same(holder.suspension()?.as_ref(), after.as_ref()) {
        return output::print(&format!("{} already suspended\n", holder.printed));
    }
    // Only what is waited for has to be known.
    let planned = match arguments.wait.wait {
        true => holder.planned(&control, after.as_ref()).await?,
        false => Planned::default(),
    };
    holder.write(&control, after.as_ref(), None).await?;
    output::print(&format!("{} suspended\n", holder.printed))?;
    arguments.wait.for_plan(&control, &planned.plan).await
}

/// Lets a policy or a template go, after saying what that dispatches.
pub async fn resume(arguments: &Resume) -> Result<()> {
    let what = &arguments.what;
    let (control, holder) = find(what).await?;
    let before = holder.suspension()?;
    let after = change_suspension(before.as_ref(), SuspensionChange::Resume, &what.cluster).map_err(|refused| {
        let hint = "resume it in all clusters, or first suspend the other clusters with `longshore suspend \
                    -C NAME`";
        anyhow::Error::new(Hint(hint.to_owned()))
            .context(refused)
            .context(format!("resume {}", holder.printed))
    })?;
    if is_same(before.as_ref(), after.as_ref()) {
        return not_suspended(&control, what, &holder).await;
    }
    print_released(&control, &holder.change(after.as_ref())).await?;
    let planned = holder.planned(&control, after.as_ref()).await?;
    planned
        .beyond
        .iter()
        .for_each(|beyond| output::print_message(&format!("Note: {}", beyond.note("with --approve"))));
    let approval = match arguments.confirmation.answer(&format!("Resume {}?", holder.printed), &planned)? {
        Confirmation::DryRun => {
            return output::print(&format!("{} would be resumed (dry run)\n", holder.printed));
        }
        Confirmation::Confirmed(approval) => approval,
    };
    holder.write(&control, after.as_ref(), approval.as_deref()).await?;
    output::print(&format!("{} resumed\n", holder.printed))?;
    arguments.wait.for_plan(&control, &planned.plan).await
}

/// Prints what a change releases; for users who may not read everything, from a plan that the control plane computes.
async fn print_released(control: &Control, change: &Change) -> Result<()> {
    if control.computes().await? {
        let answer = control.computed_plan(std::slice::from_ref(change)).await?;
        output::print_message(plan::shown(&answer.plan, &answer.notes, false, Paint::of_stdout()).trim_end());
        return Ok(());
    }
    let snapshot = control.snapshot().await?;
    let released = released(&snapshot, change)?;
    match released.is_empty() {
        true => output::print_message(
            "This dispatches nothing: nothing waits, or another suspension holds it, too.",
        ),
        false => {
            output::print_message(&format!("This dispatches:\n{}", released::shown(&released).trim_end()))
        }
    }
    Ok(())
}

/// Clusters that are named have to be there.
async fn check_clusters(control: &Control, names: &[String]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    if !control.computes().await? {
        return members::chosen(control, names).await.map(drop);
    }
    let known = control.computed_report::<Report>("status").await?.report.clusters;
    let known: Vec<&str> = known.iter().map(|cluster| cluster.name.as_str()).collect();
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(unknown) => {
            let hint = Hint(format!("there are {}", known.join(", ")));
            Err(anyhow::Error::new(hint).context(format!("find cluster {unknown:?}")))
        }
    }
}

async fn find(what: &What) -> Result<(Control, SuspensionHolder)> {
    let control = what.connection.open_to_write().await?;
    let holder = match &what.policy {
        Some(name) => policy(&control, name).await?,
        None => {
            let kinds = Kinds::of(&control.rest).await?;
            let target = kinds.template(&what.template, &control.namespace)?;
            template(&control, &target).await?
        }
    };
    Ok((control, holder))
}

/// A policy by name; without a kind the one of the namespace goes first.
async fn policy(control: &Control, name: &str) -> Result<SuspensionHolder> {
    let found = crate::policy_lookup::find(control, name).await?;
    Ok(SuspensionHolder {
        printed: found.printed(),
        collection: Collection::of(&found.kind, &found.namespace),
        name: found.name.clone(),
        draft: found.object.clone(),
        object: Some(found.object),
        is_ours: false,
    })
}

/// The rollout policy of one template, which has to exist.
async fn template(control: &Control, target: &Target) -> Result<SuspensionHolder> {
    let exists: Option<Value> = control.rest.get(&target.path()).await?;
    if exists.is_none() {
        let hint = Hint(
            "check the name and the namespace (-n); `longshore status` lists what is propagated".to_owned(),
        );
        let context = format!("{} {:?} not found", target.kind.plural, target.name);
        return Err(anyhow::Error::new(hint).context(context));
    }
    let kind =
        if target.namespace.is_empty() { kinds::CLUSTER_ROLLOUT_POLICY } else { kinds::ROLLOUT_POLICY };
    let Target { namespace, name, kind: of } = target;
    let derived = names::policy_name(&of.api_version, &of.kind, namespace, name);
    let collection = Collection::of(&kind, namespace);
    let object: Option<Value> = control.rest.get(&collection.object(&derived)).await?;
    let mut draft = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": { "name": derived },
        "spec": { "resourceSelectors": [{ "apiVersion": of.api_version, "kind": of.kind, "name": name }] },
    });
    if !namespace.is_empty() {
        draft["metadata"]["namespace"] = json!(namespace);
        draft["spec"]["resourceSelectors"][0]["namespace"] = json!(namespace);
    }
    Ok(SuspensionHolder {
        printed: target.printed(),
        collection,
        name: derived,
        object,
        draft,
        is_ours: true,
    })
}

impl SuspensionHolder {
    fn suspension(&self) -> Result<Option<Suspension>> {
        let written = self.object.as_ref().and_then(|object| object.pointer("/spec/suspension"));
        let read = serde_json::from_value(written.cloned().unwrap_or_default());
        read.with_context(|| format!("read the suspension of {}", self.printed))
    }

    fn goes(&self, after: Option<&Suspension>) -> bool {
        self.is_ours && after.is_none()
    }

    /// What writing this suspension does to the world.
    fn change(&self, after: Option<&Suspension>) -> Change {
        let object = self.object.as_ref().unwrap_or(&self.draft);
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        if self.goes(after) {
            return Change::Delete {
                api_version: text("/apiVersion"),
                kind: text("/kind"),
                namespace: text("/metadata/namespace"),
                name: self.name.clone(),
            };
        }
        let mut object = object.clone();
        object["spec"]["suspension"] = json!(after);
        Change::Put(object.into())
    }

    /// What writing this suspension would do, and whether that is allowed.
    async fn planned(&self, control: &Control, after: Option<&Suspension>) -> Result<Planned> {
        let object = self.object.as_ref().unwrap_or(&self.draft);
        let is_its = |kind: &&api::Kind| object["kind"] == kind.kind;
        let kind = kinds::ALL.iter().find(is_its).context("find the kind of the object that suspends it")?;
        let request = match &self.object {
            None => Request::create(kind, &self.drafted(after)),
            Some(object) => {
                let patch = (!self.goes(after)).then(|| json!({ "spec": { "suspension": cleared(after) } }));
                Request::change(kind, object, patch)
            }
        };
        planned(control, &[(request, self.object.clone())]).await
    }

    /// The object that holds it, where there is none yet.
    fn drafted(&self, after: Option<&Suspension>) -> Value {
        let mut draft = self.draft.clone();
        draft["spec"]["suspension"] = json!(after);
        draft
    }

    /// Writes the suspension. A policy's status is written all the time, so it may take more than one try.
    async fn write(
        &self,
        control: &Control,
        after: Option<&Suspension>,
        approval: Option<&str>,
    ) -> Result<()> {
        let mut object = self.object.clone();
        let mut written = self.send(control, object.as_ref(), after, approval).await;
        for _ in 1..CONFLICT_RETRIES_MAX {
            if !matches!(written, Err(Error::Conflict { .. })) {
                break;
            }
            let now: Option<Value> = control.rest.get(&self.collection.object(&self.name)).await?;
            let spec = |object: &Option<Value>| object.as_ref().map(|object| object["spec"].clone());
            if spec(&now) != spec(&object) {
                break;
            }
            object = now;
            written = self.send(control, object.as_ref(), after, approval).await;
        }
        written.map_err(|error| {
            let hint = match &error {
                Error::Conflict { .. } => "another client has just changed it: run the command again",
                Error::NotFound { .. } => {
                    "this control plane does not serve rollout policies; suspend the policy of the template \
                     with --policy"
                }
                _ => "nothing was changed",
            };
            anyhow::Error::new(Hint(hint.to_owned()))
                .context(error)
                .context(format!("write {}", self.printed))
        })
    }

    async fn send(
        &self,
        control: &Control,
        object: Option<&Value>,
        after: Option<&Suspension>,
        approval: Option<&str>,
    ) -> Result<(), Error> {
        let path = self.collection.object(&self.name);
        match object {
            Some(object) if self.goes(after) => {
                if approval.is_some() {
                    control.rest.merge(&path, &approving(approval)).await?;
                }
                control.rest.delete(&path, object["metadata"]["uid"].as_str()).await
            }
            Some(object) => {
                let version = &object["metadata"]["resourceVersion"];
                let patch = json!({ "metadata": { "resourceVersion": version }, "spec": { "suspension": cleared(after) } });
                control.rest.merge(&path, &merged(&patch, &approving(approval))).await.map(drop)
            }
            None => control.rest.create(&self.collection, &self.drafted(after)).await.map(drop),
        }
    }
}

/// A merge patch that leaves nothing of another suspension.
fn cleared(after: Option<&Suspension>) -> Value {
    let Some(after) = after else { return Value::Null };
    let mut patch = json!({
        "dispatching": null, "dispatchingOnClusters": null,
        "suspendDispatching": null, "suspendDispatchingOnClusters": null,
    });
    let fields = json!(after);
    for (key, value) in fields.as_object().into_iter().flatten() {
        patch[key] = value.clone();
    }
    patch
}

/// Reports that it is not suspended, and names what else holds it.
async fn not_suspended(control: &Control, what: &What, holder: &SuspensionHolder) -> Result<()> {
    if what.policy.is_none() {
        let target = Kinds::of(&control.rest).await?.template(&what.template, &control.namespace)?;
        let why = match control.computes().await? {
            true => Some(control.computed_explanation(&target, None).await?.why),
            false => {
                let snapshot = control.snapshot().await?;
                decide::why::why(&snapshot, &target.template(), decide::snapshot::Interpreters::BUILT_IN)
            }
        };
        if let Some(hold) = why.and_then(|why| why.holds.into_iter().next()) {
            let hint = Hint(
                "resume its policy with `longshore resume --policy NAME`, or change the object \
                 that suspends it"
                    .to_owned(),
            );
            return Err(anyhow::Error::new(hint).context(format!("{} is suspended {hold}", holder.printed)));
        }
    }
    output::print(&format!("{} is not suspended\n", holder.printed))
}
