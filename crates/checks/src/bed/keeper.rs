//! Who keeps a control plane while a scenario is played on it: does what the scenario asks for and no user can do.

use std::future::Future;
use std::pin::pin;

use scenario::{Favour, Trouble};
use tokio::sync::mpsc;

use super::plane::Plane;

/// Does what is asked for until `playing` has ended.
pub async fn keep(plane: &mut Plane, mut asked: mpsc::Receiver<Favour>, playing: impl Future<Output = ()>) {
    let mut playing = pin!(playing);
    loop {
        tokio::select! {
            biased;
            () = &mut playing => return,
            Some(favour) = asked.recv() => act(plane, favour).await,
        }
    }
}

async fn act(plane: &mut Plane, favour: Favour) {
    // A scenario that does not wait for the answer any more has ended.
    match favour {
        Favour::Join(cluster, reply) => {
            let _ = reply.send(plane.join_another(&cluster).await.map_err(trouble));
        }
        Favour::Reach(name, reachable, reply) => {
            let _ = reply.send(plane.reach(&name, reachable).map_err(trouble));
        }
        Favour::Restart(reply) => {
            let _ = reply.send(plane.restart().await.map_err(trouble));
        }
        Favour::Pass(time, reply) => {
            let _ = reply.send(plane.pass(time).await.map_err(trouble));
        }
        Favour::Time(reply) => {
            let _ = reply.send(Ok(plane.now()));
        }
    }
}

fn trouble(error: anyhow::Error) -> Trouble {
    Trouble(format!("{error:#}"))
}
