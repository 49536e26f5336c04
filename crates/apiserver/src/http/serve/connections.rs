//! Connection limits: how many connections may be open, which one is closed to make room for another, and when an
//! idle one is closed. It counts requests and not frames, so an HTTP/2 PING extends nothing.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

mod groups;
#[cfg(test)]
mod tests;
use groups::Groups;

use crate::authn::Identity;
use apimachinery::error::ApiError;

/// Connection limits and timeouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// All connections together.
    pub total: usize,
    /// Of those, so many are reserved for administrators and for clients that are about to authenticate.
    pub reserved: usize,
    /// Connections per address: so many of authenticated clients, and so many of unauthenticated ones.
    pub per_address: usize,
    /// Whether loopback clients, which may all come through one proxy, are exempt from the limit per address.
    pub is_loopback_exempt: bool,
    /// How long a TLS handshake may take.
    pub handshake: Duration,
    /// How long a client may take after the handshake until it authenticates.
    pub unauthenticated: Duration,
    /// The idle timeout: how long a connection may have no request in flight.
    pub idle: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            total: 10_000,
            reserved: 500,
            per_address: 1_000,
            is_loopback_exempt: true,
            handshake: Duration::from_secs(10),
            unauthenticated: Duration::from_secs(10),
            // The idle timeout of kube-apiserver.
            idle: Duration::from_secs(90),
        }
    }
}

impl ConnectionLimits {
    /// The same with at most so many connections; a twentieth of them stays reserved.
    pub fn at_most(self, total: usize) -> Self {
        let total = self.total.min(total).max(1);
        Self { total, reserved: total.div_ceil(20), ..self }
    }
}

/// How many of the oldest connections of a user are looked at to find one without a request.
const IDLE_CANDIDATES_MAX: usize = 64;
/// How many connections are closed when the process has no file descriptors left.
const DESCRIPTORS_FREED: usize = 32;

/// All open connections of a listener. Clones share them.
#[derive(Clone)]
pub(super) struct Connections {
    limits: ConnectionLimits,
    /// Held for moments.
    table: Arc<Mutex<Table>>,
}

#[derive(Default)]
struct Table {
    next_id: u64,
    open: HashMap<u64, Open>,
    unauthenticated: Groups<IpAddr>,
    users: Groups<Box<str>>,
    /// Connections of users, by address.
    user_addresses: Groups<IpAddr>,
}

struct Open {
    address: IpAddr,
    owner: Owner,
    activity: Arc<Activity>,
    closed: CancellationToken,
}

/// The owner of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Owner {
    Unauthenticated,
    User(Box<str>),
    Administrator,
}

const UNAUTHENTICATED: u8 = 0;
const USER: u8 = 1;
const ADMINISTRATOR: u8 = 2;

/// The state of a connection that is readable without the lock of the table.
struct Activity {
    begun: Instant,
    /// One of the three constants above; only grows.
    owner: AtomicU8,
    requests: AtomicUsize,
    /// When the last request ended, in milliseconds since the beginning.
    rested: AtomicU64,
}

impl Activity {
    fn is_idle(&self) -> bool {
        self.requests.load(Ordering::Relaxed) == 0
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// The permit of one open connection; dropping it makes room.
pub(super) struct ConnectionPermit {
    handle: ConnectionHandle,
    closed: CancellationToken,
}

/// The handle of the connection that a request came over.
#[derive(Clone)]
pub(crate) struct ConnectionHandle {
    id: u64,
    connections: Connections,
    activity: Arc<Activity>,
}

/// A request in flight.
pub(crate) struct RequestGuard(Arc<Activity>);

impl Connections {
    pub fn new(limits: ConnectionLimits) -> Self {
        Self { limits, table: Arc::default() }
    }

    fn with<Answer>(&self, work: impl FnOnce(&mut Table) -> Answer) -> Answer {
        work(&mut self.table.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Admits a new connection, closing another if there is no room. None if all others are administrators'.
    pub fn admit(&self, peer: IpAddr) -> Option<ConnectionPermit> {
        let address = network(peer);
        let limit = self.per_address(address);
        let activity = Arc::new(Activity {
            begun: Instant::now(),
            owner: AtomicU8::new(UNAUTHENTICATED),
            requests: AtomicUsize::new(0),
            rested: AtomicU64::new(0),
        });
        let closed = CancellationToken::new();
        let id = self.with(|table| {
            if table.unauthenticated.size(&address) >= limit {
                table.close(table.unauthenticated.oldest(&address));
            }
            if table.open.len() >= self.limits.total && !table.make_room() {
                return None;
            }
            table.next_id += 1;
            let (activity, closed) = (activity.clone(), closed.clone());
            table.unauthenticated.insert(&address, table.next_id);
            table
                .open
                .insert(table.next_id, Open { address, owner: Owner::Unauthenticated, activity, closed });
            Some(table.next_id)
        })?;
        let handle = ConnectionHandle { id, connections: self.clone(), activity };
        Some(ConnectionPermit { handle, closed })
    }

    /// Closes some connections because the process has no file descriptors left.
    pub fn free_descriptors(&self) {
        self.with(|table| (0..DESCRIPTORS_FREED).all(|_| table.make_room()));
    }

    fn per_address(&self, address: IpAddr) -> usize {
        match self.limits.is_loopback_exempt && address.is_loopback() {
            true => usize::MAX,
            false => self.limits.per_address,
        }
    }
}

/// The unit of the limit per address: an IPv4 address, or the network of an IPv6 address.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        address => address,
    }
}

impl Table {
    fn close(&mut self, id: Option<u64>) -> bool {
        let Some(open) = id.and_then(|id| self.remove(id)) else { return false };
        open.closed.cancel();
        true
    }

    fn remove(&mut self, id: u64) -> Option<Open> {
        let open = self.open.remove(&id)?;
        match &open.owner {
            Owner::Unauthenticated => self.unauthenticated.remove(&open.address, id),
            Owner::User(user) => {
                self.users.remove(user, id);
                self.user_addresses.remove(&open.address, id);
            }
            Owner::Administrator => {}
        }
        Some(open)
    }

    /// Closes the oldest connection of the address with the most unauthenticated clients; if there are none, one of
    /// the user with the most connections.
    fn make_room(&mut self) -> bool {
        let oldest = self.unauthenticated.largest().and_then(|address| self.unauthenticated.oldest(address));
        self.close(oldest) || self.close_of_largest_user()
    }

    fn close_of_largest_user(&mut self) -> bool {
        let chosen = self.users.largest().and_then(|user| {
            let idle = self.users.members(user).take(IDLE_CANDIDATES_MAX).find(|id| self.is_idle(*id));
            idle.or_else(|| self.users.oldest(user))
        });
        self.close(chosen)
    }

    fn is_idle(&self, id: u64) -> bool {
        self.open.get(&id).is_some_and(|open| open.activity.is_idle())
    }

    /// Moves a connection to a user, if the limit for users allows it.
    fn assign_to_user(&mut self, id: u64, user: &str, limits: &ConnectionLimits, per_address: usize) -> bool {
        let Some(open) = self.open.get(&id) else { return false };
        let address = open.address;
        if self.user_addresses.size(&address) >= per_address {
            let others = self.user_addresses.members(&address).take(IDLE_CANDIDATES_MAX);
            let idle = others.into_iter().find(|other| self.is_idle(*other));
            if !self.close(idle) {
                return false;
            }
        }
        if self.users.total() >= limits.total - limits.reserved.min(limits.total) {
            self.close_of_largest_user();
        }
        let Some(open) = self.open.get_mut(&id) else { return false };
        open.owner = Owner::User(user.into());
        self.unauthenticated.remove(&address, id);
        self.users.insert(&user.into(), id);
        self.user_addresses.insert(&address, id);
        true
    }

    fn assign_to_administrator(&mut self, id: u64) {
        if let Some(mut open) = self.remove(id) {
            open.owner = Owner::Administrator;
            self.open.insert(id, open);
        }
    }
}

impl ConnectionHandle {
    /// Records the authenticated user. A connection stays with the first user who sent a request over it, and becomes
    /// an administrator's when one does. Refused if there are too many connections of users.
    pub fn authenticated(&self, identity: &Identity) -> Result<(), ApiError> {
        let asks = identity.impersonator.as_deref().unwrap_or(identity);
        let is_administrator = asks.is_administrator();
        match self.activity.owner.load(Ordering::Relaxed) {
            ADMINISTRATOR => return Ok(()),
            USER if !is_administrator => return Ok(()),
            _ if asks.user == crate::authn::ANONYMOUS => return Ok(()),
            _ => {}
        }
        let connections = &self.connections;
        let is_let_in = connections.with(|table| {
            if is_administrator {
                table.assign_to_administrator(self.id);
                return true;
            }
            let Some(open) = table.open.get(&self.id) else { return true };
            let per_address = connections.per_address(open.address);
            table.assign_to_user(self.id, &asks.user, &connections.limits, per_address)
        });
        if !is_let_in {
            return Err(ApiError::too_many_requests("too many connections, please try again later", 1));
        }
        self.activity.owner.store(if is_administrator { ADMINISTRATOR } else { USER }, Ordering::Relaxed);
        Ok(())
    }

    /// Counts a request as in flight until the guard is dropped.
    pub fn begin_request(&self) -> RequestGuard {
        self.activity.requests.fetch_add(1, Ordering::Relaxed);
        RequestGuard(self.activity.clone())
    }

    fn deadline(&self) -> Instant {
        let (activity, limits) = (&self.activity, &self.connections.limits);
        if activity.owner.load(Ordering::Relaxed) == UNAUTHENTICATED {
            return activity.begun + limits.handshake + limits.unauthenticated;
        }
        match activity.is_idle() {
            true => {
                activity.begun + Duration::from_millis(activity.rested.load(Ordering::Relaxed)) + limits.idle
            }
            false => Instant::now() + limits.idle,
        }
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.rested.store(self.0.milliseconds(), Ordering::Relaxed);
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ConnectionPermit {
    /// The handle that requests on this connection get.
    pub fn handle(&self) -> &ConnectionHandle {
        &self.handle
    }

    /// Resolves when the connection has to make room for another.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Resolves when the connection exceeds its idle timeout, or its client has not authenticated in time.
    pub async fn expired(&self) {
        loop {
            let deadline = self.handle.deadline();
            if deadline <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(deadline).await;
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.handle.connections.with(|table| table.remove(self.handle.id));
    }
}
