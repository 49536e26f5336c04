//! `/metrics` in Prometheus' text format: the server's own counters, and those of the embedding process, which passes
//! in a function that renders them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, OnceLock};

use http::{Method, StatusCode};
use store::Stats;
use supervise::Recovered as _;

/// Text in Prometheus' format, made when it is asked for.
pub(crate) type Source = Box<dyn Fn() -> String + Send + Sync>;

/// What is counted, and where the rest comes from.
#[derive(Default)]
pub(crate) struct Metrics {
    /// Requests by method and answer; held for moments. Both come from small sets, so it stays small.
    requests: Mutex<BTreeMap<(&'static str, u16), u64>>,
    external: OnceLock<Source>,
}

impl Metrics {
    /// Counts a request that was answered.
    pub fn count(&self, method: &Method, code: StatusCode) {
        let mut requests = self.requests.lock().recovered();
        *requests.entry((verb(method), code.as_u16())).or_default() += 1;
    }

    /// Takes in where the rest comes from; only the first one counts.
    pub fn add(&self, source: Source) {
        // Only the embedding process calls this, once; a second source is ignored.
        let _ = self.external.set(source);
    }

    /// What the embedding process counts, requests by answer, and the state of the store, in Prometheus' format.
    pub fn print(&self, text: &mut String, stats: &Stats) {
        text.push_str(&self.external.get().map(|source| source()).unwrap_or_default());
        print_requests(text, &self.requests.lock().recovered().clone(), stats);
    }
}

/// How many events of unauthenticated requests the audit log leaves out.
pub(crate) fn print_dropped_refusals(text: &mut String, dropped: u64) {
    let name = "apiserver_audit_refusals_dropped_total";
    let help =
        "Refusals of unauthenticated clients that the audit log leaves out because there are too many.";
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {dropped}");
}

/// Unknown methods share one label, so that clients cannot make the table grow.
fn verb(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        _ => "OTHER",
    }
}

fn print_requests(text: &mut String, requests: &BTreeMap<(&'static str, u16), u64>, stats: &Stats) {
    let _ = writeln!(text, "# HELP apiserver_request_total Requests that were answered, by HTTP method.");
    let _ = writeln!(text, "# TYPE apiserver_request_total counter");
    for ((verb, code), count) in requests {
        let _ = writeln!(text, "apiserver_request_total{{code=\"{code}\",verb=\"{verb}\"}} {count}");
    }
    let families = [
        ("longshore_store_revision", "counter", "Writes since the beginning.", stats.revision),
        ("longshore_store_objects", "gauge", "Objects that there are.", stats.live_keys),
        ("longshore_store_object_bytes", "gauge", "Bytes of them.", stats.live_bytes),
        ("longshore_store_history_events", "gauge", "Events that watches can ask for.", stats.history_events),
        ("longshore_store_history_bytes", "gauge", "Bytes of them.", stats.history_bytes),
        ("longshore_store_log_bytes", "gauge", "Bytes of log files on disk.", stats.log_bytes),
        ("longshore_store_snapshot_bytes", "gauge", "Bytes of the snapshot on disk.", stats.snapshot_bytes),
        ("longshore_store_syncs_total", "counter", "How often the log was forced to disk.", stats.syncs),
        ("longshore_store_refuses_writes", "gauge", "1 when the disk failed.", stats.refuses_writes.into()),
    ];
    for (name, shape, help, value) in families {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {shape}\n{name} {value}");
    }
}

/// Whether writes fail.
pub(crate) fn print_writes(text: &mut String, fail: bool) {
    let name = "longshore_store_writes_fail";
    let help = "1 while writes fail, because the disk is full for instance.";
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {}", u8::from(fail));
}

/// The panics that were caught.
pub(crate) fn print_panics(text: &mut String, panics: &BTreeMap<&'static str, u64>) {
    let _ = writeln!(text, "# HELP apiserver_task_panics_total Panics that were caught, by task.");
    let _ = writeln!(text, "# TYPE apiserver_task_panics_total counter");
    for (task, count) in panics {
        let _ = writeln!(text, "apiserver_task_panics_total{{task=\"{task}\"}} {count}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_method_and_answer() {
        let metrics = Metrics::default();
        for (method, code) in [("GET", 200), ("GET", 200), ("GET", 404), ("BREW", 405), ("SIP", 405)] {
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            metrics.count(&method, StatusCode::from_u16(code).expect("a code"));
        }
        let mut text = String::new();
        let requests = metrics.requests.lock().recovered();
        print_requests(&mut text, &requests, &Stats::default());
        for line in [
            "apiserver_request_total{code=\"200\",verb=\"GET\"} 2",
            "apiserver_request_total{code=\"404\",verb=\"GET\"} 1",
            "apiserver_request_total{code=\"405\",verb=\"OTHER\"} 2",
            "longshore_store_objects 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }
}
