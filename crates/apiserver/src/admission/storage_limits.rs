//! Storage limits: bytes per namespace, and in the whole store. Writes that shrink or delete are never refused, so a
//! full store can be emptied. The store counts with every write, so a check is O(1); concurrent writes are not
//! counted yet and may exceed a limit together.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use store::{Store, Usage};

use crate::call::Call;
use apimachinery::error::ApiError;

/// How much may be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageLimits {
    /// Objects in one namespace.
    pub namespace_objects: u64,
    /// Bytes of the objects in one namespace.
    pub namespace_bytes: u64,
    /// Bytes of all objects. Clients in this process may use a tenth more, so that the system can report on itself.
    pub total_bytes: u64,
    /// Namespaces whose names begin so have no limit of their own.
    pub exempt_prefixes: Vec<String>,
}

impl Default for StorageLimits {
    fn default() -> Self {
        Self {
            namespace_objects: 100_000,
            namespace_bytes: 512 << 20,
            total_bytes: 4 << 30,
            exempt_prefixes: vec!["kube-".to_owned()],
        }
    }
}

/// How many namespaces metrics tell about: those with the most bytes, with the most objects, and the fullest.
const LARGEST_NAMESPACES: usize = 10;

/// Enforces the limits, and remembers whether writes have been refused because the store is full.
pub(crate) struct StorageLimiter {
    limits: StorageLimits,
    store: Store,
    /// How many bytes were used when a write was refused last; zero if none was. While nothing was freed since, writes
    /// count as refused.
    refused_at_bytes: AtomicU64,
}

impl StorageLimits {
    fn is_exempt(&self, namespace: &str) -> bool {
        self.exempt_prefixes.iter().any(|prefix| namespace.starts_with(prefix.as_str()))
    }

    /// Which limit a namespace is closest to, and how much of it is used.
    fn fullness(&self, usage: Usage) -> (&'static str, f64) {
        let bytes = ratio(usage.bytes, self.namespace_bytes);
        let objects = ratio(usage.keys, self.namespace_objects);
        if objects > bytes { ("objects", objects) } else { ("bytes", bytes) }
    }
}

/// How much of a limit is used; where nothing is allowed, all of it is.
fn ratio(used: u64, limit: u64) -> f64 {
    if limit == 0 { 1.0 } else { used as f64 / limit as f64 }
}

impl StorageLimiter {
    /// Limits what this store holds.
    pub fn new(limits: StorageLimits, store: Store) -> Self {
        Self { limits, store, refused_at_bytes: AtomicU64::new(0) }
    }

    /// Refuses a write that would store too much. `old_bytes` is the size of the object that it replaces.
    pub fn check(
        &self,
        call: &Call,
        name: &str,
        old_bytes: Option<usize>,
        new_bytes: usize,
    ) -> Result<(), ApiError> {
        let grown = new_bytes.saturating_sub(old_bytes.unwrap_or(0)) as u64;
        if old_bytes.is_some() && grown == 0 {
            return Ok(());
        }
        self.check_total(call, grown)?;
        self.check_namespace(call, name, old_bytes.is_none(), grown)
    }

    fn check_total(&self, call: &Call, grown: u64) -> Result<(), ApiError> {
        let limit = self.limits.total_bytes;
        let used = self.store.total_usage().bytes;
        let allowed = if call.identity.is_internal { limit.saturating_add(limit / 10) } else { limit };
        if used.saturating_add(grown) <= allowed {
            return Ok(());
        }
        self.refused_at_bytes.store(used.max(1), Ordering::Relaxed);
        Err(ApiError::insufficient_storage(format!(
            "the control plane cannot store more: {used} of {limit} bytes are used; hint: delete objects that are not \
             needed, or ask an administrator to raise --storage-max-bytes"
        )))
    }

    /// How full the store is, as a health check tells it; an error while writes are refused for that.
    pub fn health(&self) -> Result<String, String> {
        let (used, limit) = (self.store.total_usage().bytes, self.limits.total_bytes);
        let percent = (ratio(used, limit) * 100.0) as u64;
        let usage = format!("{percent} % of {limit} bytes are used");
        let refused_at = self.refused_at_bytes.load(Ordering::Relaxed);
        match refused_at > 0 && used >= refused_at {
            true => Err(format!("writes are refused: {usage}")),
            false => Ok(usage),
        }
    }

    fn check_namespace(&self, call: &Call, name: &str, is_new: bool, grown: u64) -> Result<(), ApiError> {
        let limits = &self.limits;
        let Some(namespace) = call.namespace.as_deref() else { return Ok(()) };
        let is_status = !is_new && call.subresource() == "status";
        if call.identity.is_internal || limits.is_exempt(namespace) || is_status {
            return Ok(());
        }
        let used = self.store.usage(namespace);
        let why = if is_new && used.keys >= limits.namespace_objects {
            format!("{} of {} objects are stored", used.keys, limits.namespace_objects)
        } else if used.bytes.saturating_add(grown) > limits.namespace_bytes {
            format!("{} of {} bytes are used", used.bytes, limits.namespace_bytes)
        } else {
            return Ok(());
        };
        let why = format!(
            "namespace {namespace} is full: {why}; hint: delete objects that are not needed, or ask an administrator \
             to raise --namespace-max-objects or --namespace-max-bytes"
        );
        Err(ApiError::forbidden(call.resource.subject(name), why))
    }

    /// How full the store is, in Prometheus' format.
    pub fn print_metrics(&self, text: &mut String) {
        let limits = &self.limits;
        let used = self.store.total_usage();
        let families = [
            ("apiserver_storage_size_bytes", "Bytes of all objects.", used.bytes),
            ("apiserver_storage_size_limit_bytes", "Bytes that all objects may have.", limits.total_bytes),
            (
                "apiserver_storage_namespace_limit_bytes",
                "Bytes that the objects of one namespace may have.",
                limits.namespace_bytes,
            ),
            (
                "apiserver_storage_namespace_limit_objects",
                "Objects that one namespace may have.",
                limits.namespace_objects,
            ),
        ];
        for (name, help, value) in families {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
        }
        let used_ratio = ratio(used.bytes, limits.total_bytes);
        print_gauge(text, "apiserver_storage_used_ratio", "How much of the limit of all objects is used.");
        let _ = writeln!(text, "apiserver_storage_used_ratio {used_ratio:.4}");
        self.print_namespaces(text);
    }

    /// The namespaces that an administrator should know of.
    fn print_namespaces(&self, text: &mut String) {
        let limits = &self.limits;
        let largest = |rank: &dyn Fn(&str, Usage) -> u64| self.store.largest_usages(LARGEST_NAMESPACES, rank);
        let name = "apiserver_storage_namespace_bytes";
        print_gauge(text, name, "Bytes of the namespaces with the most bytes.");
        for (namespace, usage) in largest(&|_, usage| usage.bytes) {
            let _ = writeln!(text, "{name}{{namespace=\"{namespace}\"}} {}", usage.bytes);
        }
        let name = "apiserver_storage_namespace_objects";
        print_gauge(text, name, "Objects of the namespaces with the most objects.");
        for (namespace, usage) in largest(&|_, usage| usage.keys) {
            let _ = writeln!(text, "{name}{{namespace=\"{namespace}\"}} {}", usage.keys);
        }
        let name = "apiserver_storage_namespace_used_ratio";
        print_gauge(
            text,
            name,
            "How much of its limits the fullest namespaces use, by the limit that is closest.",
        );
        let millionths = |namespace: &str, usage: Usage| match limits.is_exempt(namespace) {
            true => 0,
            false => (limits.fullness(usage).1 * 1e6) as u64,
        };
        for (namespace, usage) in largest(&millionths) {
            let (limit, ratio) = limits.fullness(usage);
            let _ = writeln!(text, "{name}{{limit=\"{limit}\",namespace=\"{namespace}\"}} {ratio:.4}");
        }
    }
}

fn print_gauge(text: &mut String, name: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
}
