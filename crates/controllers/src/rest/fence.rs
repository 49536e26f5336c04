//! Leader fencing: the permission to write, which expires at a certain moment unless it is extended. Requests under an
//! expired fence are cancelled, even in flight. Independent of how leadership is obtained.

use std::sync::Arc;

use tokio::time::Instant;

use crate::runtime::Watched;

/// The permission to write. Clones share it; it is not held at first.
#[derive(Debug, Clone, Default)]
pub struct LeaderFence(Arc<Watched<Option<Instant>>>);

impl LeaderFence {
    /// From now on it is good until then.
    pub fn extend(&self, until: Instant) {
        self.0.change(|held| *held = Some(until));
    }

    /// Ends the permission to write.
    pub fn revoke(&self) {
        self.0.change(|held| *held = None);
    }

    /// Until when it is good; none if it is not.
    fn until(&self) -> Option<Instant> {
        self.0.read(|held| *held).filter(|until| *until > Instant::now())
    }

    /// Whether it is good now.
    pub fn is_held(&self) -> bool {
        self.until().is_some()
    }

    /// Waits until it is good.
    pub async fn held(&self) {
        self.0.until(|held| held.filter(|until| *until > Instant::now()).map(drop)).await;
    }

    /// Waits until it is no longer good.
    pub async fn lost(&self) {
        while let Some(until) = self.until() {
            tokio::select! {
                biased;
                () = self.0.until(|held| (*held != Some(until)).then_some(())) => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_fence_ends_unless_it_is_extended() {
        let (fence, begun) = (LeaderFence::default(), Instant::now());
        assert!(!fence.is_held());
        fence.lost().await;
        fence.extend(begun + Duration::from_secs(10));
        fence.held().await;
        let extended = fence.clone();
        let extend = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            extended.extend(begun + Duration::from_secs(15));
        };
        tokio::join!(fence.lost(), extend);
        assert_eq!(begun.elapsed().as_secs(), 15);
        fence.extend(begun + Duration::from_secs(60));
        fence.revoke();
        assert!(!fence.is_held());
    }
}
