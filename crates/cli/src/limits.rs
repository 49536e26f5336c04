//! Resource limits of the control plane: the flags of `longshore up` for connections and storage, and the limits of the
//! machine.

use apiserver::{ConnectionLimits, StorageLimits};

/// Flags about how much is taken in.
#[derive(clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitFlags {
    /// Maximum number of open connections; a twentieth of them is reserved for administrators
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    max_connections: u32,
    /// Maximum number of open connections per client address [default: 1000; no limit for clients on this machine]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_connections_per_address: Option<u32>,
    /// Maximum number of objects in one namespace; system namespaces have no limit
    #[arg(long, value_name = "N", default_value_t = StorageLimits::default().namespace_objects)]
    namespace_max_objects: u64,
    /// Maximum size of all objects in one namespace, in bytes; system namespaces have no limit
    #[arg(long, value_name = "N", default_value_t = StorageLimits::default().namespace_bytes)]
    namespace_max_bytes: u64,
    /// Maximum size of all objects together, in bytes
    #[arg(long, value_name = "N", default_value_t = StorageLimits::default().total_bytes)]
    storage_max_bytes: u64,
}

/// How names of namespaces begin that belong to the system: execution namespaces of members, credentials, leases.
const SYSTEM_NAMESPACES: [&str; 2] = ["kube-", "karmada-"];

/// The resource limits of the process, from procfs.
const PROCESS_LIMITS: &str = "/proc/self/limits";

impl LimitFlags {
    /// How much may be stored.
    pub fn storage(&self) -> StorageLimits {
        StorageLimits {
            namespace_objects: self.namespace_max_objects,
            namespace_bytes: self.namespace_max_bytes,
            total_bytes: self.storage_max_bytes,
            exempt_prefixes: SYSTEM_NAMESPACES.map(str::to_owned).into(),
        }
    }

    /// The limits of the control plane's listener. Half of the file descriptors stay for files and members.
    pub fn connections(&self) -> ConnectionLimits {
        let default = ConnectionLimits::default();
        let limits = ConnectionLimits {
            total: usize::try_from(self.max_connections).unwrap_or(usize::MAX),
            per_address: self
                .max_connections_per_address
                .map_or(default.per_address, |limit| usize::try_from(limit).unwrap_or(usize::MAX)),
            is_loopback_exempt: self.max_connections_per_address.is_none(),
            ..default
        };
        let bounded = limits.at_most(descriptors().map_or(limits.total, |descriptors| descriptors / 2));
        if bounded.total < limits.total {
            tracing::warn!(
                wanted = limits.total,
                taken = bounded.total,
                "the limit of open files (ulimit -n) is lower than --max-connections needs; the server \
                 accepts fewer connections"
            );
        }
        bounded
    }
}

/// The limits of one of so many local members, which share a quarter of the file descriptors.
pub fn member_connections(members: usize) -> ConnectionLimits {
    let limits = ConnectionLimits::default();
    limits.at_most(descriptors().map_or(limits.total, |descriptors| descriptors / 4 / members.max(1)))
}

/// How many files this process may have open, where that can be known.
fn descriptors() -> Option<usize> {
    soft_limit(&std::fs::read_to_string(PROCESS_LIMITS).ok()?)
}

fn soft_limit(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_open_files_is_read() {
        let text = "Limit                     Soft Limit           Hard Limit           Units\n\
                    Max processes             63338                63338                processes\n\
                    Max open files            1024                 524288               files\n";
        assert_eq!(soft_limit(text), Some(1024));
        assert_eq!(
            soft_limit("Max open files            unlimited            unlimited            files"),
            None
        );
        assert_eq!(soft_limit(""), None);
    }
}
