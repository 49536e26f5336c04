//! `longshore apply PLAN`: makes the changes of a saved plan, if they still do exactly what it says.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use controllers::rest::Error;
use decide::template::digest;
use plane::outlook::APPROVED;
use serde_json::{Value, json};

use crate::connection::{Connection, Control};
use crate::plan::{Planned, Request, Saved, Verb, brings, merged, planned, state};
use crate::{Hint, output};

/// How long to wait for a kind that was just made, and how often.
const WAIT: Duration = Duration::from_millis(100);
const WAITS_MAX: usize = 100;
/// How many differences are told.
const LINES_MAX: usize = 20;

/// Arguments of `longshore apply`.
#[derive(clap::Args)]
pub struct Arguments {
    /// A file that `longshore plan --save` wrote
    #[arg(value_name = "PLAN")]
    file: PathBuf,
    #[command(flatten)]
    connection: Connection,
}

/// Plans again, and applies it if nothing is different.
pub async fn run(arguments: &Arguments) -> Result<()> {
    let saved = Saved::read(&arguments.file)?;
    let control = arguments.connection.open().await?;
    let requests = unchanged(&control, &saved).await?;
    let now = planned(&control, &requests).await?;
    let mut moved = saved.differences(&now.plan)?;
    if now.gates != saved.gates {
        moved.push(format!("feature gates: {:?} then, {:?} now", saved.gates, now.gates));
    }
    refuse(moved)?;
    let requests = approved(requests.into_iter().map(|(request, _)| request).collect(), &now)?;
    let mut done = Vec::new();
    for request in &requests {
        send(&control, request, &requests).await.with_context(|| match done.is_empty() {
            true => format!("apply {}; nothing was changed", request.object),
            false => format!("apply {}, after {}", request.object, done.join(", ")),
        })?;
        output::print(&format!("{} {}\n", request.object, request.done()))?;
        done.push(request.object.clone());
    }
    output::print(&format!("{}\n", now.plan.totals))
}

/// Sends a change; a kind that one of the others has just made may take a moment until it is served.
async fn send(control: &Control, request: &Request, all: &[Request]) -> Result<(), Error> {
    let mut sent = request.send(&control.rest, false).await;
    for _ in 0..WAITS_MAX {
        if !matches!(sent, Err(Error::NotFound { .. })) || !all.iter().any(|other| brings(other, request)) {
            break;
        }
        tokio::time::sleep(WAIT).await;
        sent = request.send(&control.rest, false).await;
    }
    sent.map(drop)
}

/// The requests, naming the plan that was seen where they go beyond a budget.
fn approved(requests: Vec<Request>, now: &Planned) -> Result<Vec<Request>> {
    let Some(beyond) = now.beyond.first() else { return Ok(requests) };
    let refused = |hint: &str, why: &str| {
        Err(anyhow::Error::new(Hint(hint.to_owned())).context(format!("{why}: {}", beyond.why)))
    };
    let [request] = requests.as_slice() else {
        return refused("plan and apply the policy by itself", "one of the changes goes beyond its budget");
    };
    if digest(&json!(now.plan)) != beyond.plan {
        return refused("try again in a moment", "the control plane has not seen everything yet");
    }
    let seen = json!({ "metadata": { "annotations": { APPROVED: beyond.plan } } });
    Ok(match request.verb {
        Verb::Delete => vec![Request { verb: Verb::Patch, body: seen, ..request.clone() }, request.clone()],
        Verb::Create | Verb::Patch => {
            vec![Request { body: merged(&request.body, &seen), ..request.clone() }]
        }
    })
}

/// The requests with the objects as they are, if those are as they were.
async fn unchanged(control: &Control, saved: &Saved) -> Result<Vec<(Request, Option<Value>)>> {
    let mut requests = Vec::new();
    let mut moved = Vec::new();
    for request in &saved.requests {
        let live = request.live(&control.rest).await.with_context(|| format!("read {}", request.object))?;
        match (&live, request.before.as_str()) {
            (None, "") => {}
            (Some(_), "") => moved.push(format!("{}: it was not there then, and is now", request.object)),
            (None, _) => moved.push(format!("{}: it was there then, and is not now", request.object)),
            (Some(live), before) if state(live) != before => {
                moved.push(format!("{}: somebody changed it since", request.object));
            }
            (Some(_), _) => {}
        }
        requests.push((request.clone(), live));
    }
    refuse(moved)?;
    Ok(requests)
}

fn refuse(moved: Vec<String>) -> Result<()> {
    if moved.is_empty() {
        return Ok(());
    }
    let more = moved.len().saturating_sub(LINES_MAX);
    let mut lines: Vec<String> =
        moved.into_iter().take(LINES_MAX).map(|line| format!("\n  {line}")).collect();
    if more > 0 {
        lines.push(format!("\n  and {more} more"));
    }
    let hint = Hint("nothing was changed; plan again, look at it, and apply the new plan".to_owned());
    Err(anyhow::Error::new(hint)
        .context(anyhow!("the world has moved since the plan was made:{}", lines.concat())))
}
