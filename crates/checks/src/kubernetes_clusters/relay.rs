//! A TCP relay between two processes: forwards bytes to the first target that listens, and can be cut (a network
//! partition), so that nothing arrives and neither side gets an error.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A relay on a port of its own. It ends when it is dropped.
pub struct Relay {
    port: u16,
    open: Arc<watch::Sender<bool>>,
    task: JoinHandle<()>,
}

impl Relay {
    /// Passes on to the first of these ports on this machine that listens.
    pub async fn start(targets: &[u16]) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("find a free port")?;
        let port = listener.local_addr()?.port();
        let open = Arc::new(watch::Sender::new(true));
        let (targets, gate) = (targets.to_vec(), open.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(pass(stream, targets.clone(), gate.subscribe()));
            }
        });
        Ok(Self { port, open, task })
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether it lets anything through.
    pub fn is_open(&self) -> bool {
        *self.open.borrow()
    }

    /// Lets nothing through any more, in either direction; connections stay open and hang.
    pub fn cut(&self) {
        self.open.send_replace(false);
    }

    /// Lets everything through again; what hung is broken off, as by a router that forgot it.
    pub fn mend(&self) {
        self.open.send_replace(true);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(mut near: TcpStream, targets: Vec<u16>, mut open: watch::Receiver<bool>) {
    if open.wait_for(|open| *open).await.is_err() {
        return;
    }
    for target in targets {
        let Ok(mut far) = TcpStream::connect(("127.0.0.1", target)).await else { continue };
        let is_cut = tokio::select! {
            _ = tokio::io::copy_bidirectional(&mut near, &mut far) => false,
            cut = open.wait_for(|open| !*open) => cut.is_ok(),
        };
        if is_cut {
            // Both ends stay open until the way is there again.
            let _ = open.wait_for(|open| *open).await;
        }
        return;
    }
}
