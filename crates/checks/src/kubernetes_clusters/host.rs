//! The host of a control plane on test clusters while a scenario is played: performs the operations of a scenario that
//! no user can do.

use std::future::Future;
use std::pin::pin;

use scenario::{HostOperation, PlayError};
use tokio::sync::mpsc;

use super::plane::Plane;

/// Does what is asked for until `playing` has ended.
pub async fn serve_host_operations(
    plane: &mut Plane,
    mut asked: mpsc::Receiver<HostOperation>,
    playing: impl Future<Output = ()>,
) {
    let mut playing = pin!(playing);
    loop {
        tokio::select! {
            biased;
            () = &mut playing => return,
            Some(operation) = asked.recv() => execute(plane, operation).await,
        }
    }
}

async fn execute(plane: &mut Plane, operation: HostOperation) {
    // A scenario that does not wait for the answer any more has ended.
    match operation {
        HostOperation::Join(cluster, reply) => {
            let _ = reply.send(plane.join_another(&cluster).await.map_err(trouble));
        }
        HostOperation::Reach(name, reachable, reply) => {
            let _ = reply.send(plane.reach(&name, reachable).map_err(trouble));
        }
        HostOperation::Restart(reply) => {
            let _ = reply.send(plane.restart().await.map_err(trouble));
        }
        HostOperation::Pass(time, reply) => {
            let _ = reply.send(plane.pass(time).await.map_err(trouble));
        }
        HostOperation::Time(reply) => {
            let _ = reply.send(Ok(plane.now()));
        }
    }
}

fn trouble(error: anyhow::Error) -> PlayError {
    PlayError(format!("{error:#}"))
}
