//! Host operations of a live control plane that a scenario needs and no user can do: join a cluster, cut one off,
//! restart the controllers, advance and read the clock. Knows neither steps nor implementations.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use crate::error::PlayError;
use crate::step::Cluster;

/// How the host answers.
pub type Reply<T> = oneshot::Sender<Result<T, PlayError>>;

/// An operation that the host is asked for, with the channel for its result.
#[derive(Debug)]
pub enum HostOperation {
    /// A cluster joins; the answer is a kubeconfig of it.
    Join(Cluster, Reply<PathBuf>),
    /// A cluster can be reached again, or not any more.
    Reach(String, bool, Reply<()>),
    /// Restarts all controllers.
    Restart(Reply<()>),
    /// Time passes.
    Pass(Duration, Reply<()>),
    /// What time it is for the controllers.
    Time(Reply<Timestamp>),
}

/// A client of the host.
#[derive(Debug, Clone)]
pub struct Host(mpsc::Sender<HostOperation>);

impl Host {
    /// The host, and the receiver of the requests to it.
    pub fn new() -> (Self, mpsc::Receiver<HostOperation>) {
        // A scenario asks for one thing at a time.
        let (sender, receiver) = mpsc::channel(1);
        (Self(sender), receiver)
    }

    pub(crate) async fn ask<T>(
        &self,
        operation: impl FnOnce(Reply<T>) -> HostOperation,
    ) -> Result<T, PlayError> {
        let (reply, answer) = oneshot::channel();
        let gone = || PlayError("the host of this control plane has ended".to_owned());
        self.0.send(operation(reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}
