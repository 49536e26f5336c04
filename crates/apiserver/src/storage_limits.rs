//! Storage limits: bytes per namespace, and in the whole store. Writes that shrink or delete are never refused, so a
//! full store can be emptied. The store counts with every write, so a check is O(1); concurrent writes are not
//! counted yet and may exceed a limit together.

use std::fmt::Write as _;

use crate::engine::Engine;
use crate::verbs::Call;
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

/// How many namespaces metrics tell about: those with the most bytes.
const LARGEST_NAMESPACES: usize = 10;

impl Engine {
    /// Refuses a write that would store too much. `old_bytes` is the size of the object that it replaces.
    pub fn check_storage(
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
        self.check_namespace_storage(call, name, old_bytes.is_none(), grown)
    }

    fn check_total(&self, call: &Call, grown: u64) -> Result<(), ApiError> {
        let limit = self.security.storage.total_bytes;
        let used = self.store.total_usage().bytes;
        let allowed = if call.identity.is_internal { limit.saturating_add(limit / 10) } else { limit };
        if used.saturating_add(grown) <= allowed {
            return Ok(());
        }
        Err(ApiError::insufficient_storage(format!(
            "the control plane cannot store more: {used} of {limit} bytes are used; hint: delete objects that are not \
             needed, or ask an administrator to raise --storage-max-bytes"
        )))
    }

    fn check_namespace_storage(
        &self,
        call: &Call,
        name: &str,
        is_new: bool,
        grown: u64,
    ) -> Result<(), ApiError> {
        let limits = &self.security.storage;
        let Some(namespace) = call.namespace.as_deref() else { return Ok(()) };
        let is_exempt = limits.exempt_prefixes.iter().any(|prefix| namespace.starts_with(prefix.as_str()));
        let is_status = !is_new && call.part() == "status";
        if call.identity.is_internal || is_exempt || is_status {
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
    pub fn print_storage_metrics(&self, text: &mut String) {
        let limits = &self.security.storage;
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
        let largest = self.store.largest_usages(LARGEST_NAMESPACES);
        let bytes = ("apiserver_storage_namespace_bytes", "Bytes of the largest namespaces.");
        let objects =
            ("apiserver_storage_namespace_objects", "Objects of the namespaces with the most bytes.");
        for ((name, help), is_bytes) in [(bytes, true), (objects, false)] {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
            for (namespace, usage) in &largest {
                let value = if is_bytes { usage.bytes } else { usage.keys };
                let _ = writeln!(text, "{name}{{namespace=\"{namespace}\"}} {value}");
            }
        }
    }
}
