//! The Prometheus metrics that controllers count as things happen, under the names that Karmada's dashboards use.
//! `scrape` renders them with the gauges that are computed on scrape.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard};

use supervise::Recovered as _;
use tokio::time::Instant;

pub(crate) mod families;

use families::{FAMILIES, Family, Shape};

/// Series beyond this are not kept: labels come from outside, memory does not.
const SERIES_MAX: usize = 20_000;

/// Labels of a series, in the order they are printed in.
pub type Labels<'l> = &'l [(&'static str, &'l str)];

/// Counters, gauges and histograms. Clones share them.
#[derive(Clone, Default)]
pub struct Metrics {
    /// Guards every series; held for moments.
    series: Arc<Mutex<BTreeMap<(&'static str, String), Series>>>,
}

#[derive(Debug, Clone)]
enum Series {
    Counter(u64),
    Histogram { buckets: Vec<u64>, sum: f64, count: u64 },
}

impl Metrics {
    fn series(&self) -> MutexGuard<'_, BTreeMap<(&'static str, String), Series>> {
        self.series.lock().recovered()
    }

    /// Counts one more.
    pub fn count(&self, name: &'static str, labels: Labels<'_>) {
        let mut series = self.series();
        let key = (name, written(labels));
        if series.len() >= SERIES_MAX && !series.contains_key(&key) {
            return;
        }
        if let Series::Counter(count) = series.entry(key).or_insert(Series::Counter(0)) {
            *count += 1;
        }
    }

    /// Puts a duration into a histogram.
    pub fn observe(&self, name: &'static str, labels: Labels<'_>, seconds: f64) {
        let bounds = bounds(name);
        let mut series = self.series();
        let key = (name, written(labels));
        if series.len() >= SERIES_MAX && !series.contains_key(&key) {
            return;
        }
        let empty = Series::Histogram { buckets: vec![0; bounds.len()], sum: 0.0, count: 0 };
        if let Series::Histogram { buckets, sum, count } = series.entry(key).or_insert(empty) {
            let inside = bounds.iter().zip(buckets.iter_mut()).filter(|(bound, _)| seconds <= **bound);
            inside.for_each(|(_, bucket)| *bucket += 1);
            *sum += seconds;
            *count += 1;
        }
    }

    /// Puts the time since `start` into a histogram.
    pub fn observe_since(&self, name: &'static str, labels: Labels<'_>, start: Instant) {
        self.observe(name, labels, start.elapsed().as_secs_f64());
    }

    /// Everything that was counted, in Prometheus' text format.
    pub(crate) fn text(&self) -> String {
        let series = self.series();
        let mut text = String::new();
        for family in FAMILIES {
            let own = series
                .range((family.name, String::new())..)
                .take_while(|((name, _), _)| *name == family.name);
            // Families without samples are rendered as well, so that authors of dashboards find them.
            head(&mut text, family);
            for ((_, labels), one) in own {
                print(&mut text, family, labels, one);
            }
        }
        text
    }
}

/// The result label that Karmada's metrics share.
pub fn result(ok: bool) -> &'static str {
    if ok { "success" } else { "error" }
}

fn bounds(name: &str) -> &'static [f64] {
    let family = FAMILIES.iter().find(|family| family.name == name);
    family.map_or(&[], |family| match family.shape {
        Shape::Histogram(bounds) => bounds,
        Shape::Counter | Shape::Gauge => &[],
    })
}

/// Writes the `HELP` and `TYPE` lines of a family.
pub(crate) fn head(text: &mut String, family: &Family) {
    let shape = match family.shape {
        Shape::Counter => "counter",
        Shape::Gauge => "gauge",
        Shape::Histogram(_) => "histogram",
    };
    let _ = writeln!(text, "# HELP {0} {1}\n# TYPE {0} {shape}", family.name, family.help);
}

fn print(text: &mut String, family: &Family, labels: &str, series: &Series) {
    let name = family.name;
    match series {
        Series::Counter(count) => {
            let _ = writeln!(text, "{name}{} {count}", braced(labels));
        }
        Series::Histogram { buckets, sum, count } => {
            let comma = if labels.is_empty() { "" } else { "," };
            for (bound, inside) in bounds(name).iter().zip(buckets) {
                let _ = writeln!(text, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {inside}");
            }
            let _ = writeln!(text, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {count}");
            let _ = writeln!(text, "{name}_sum{} {sum}", braced(labels));
            let _ = writeln!(text, "{name}_count{} {count}", braced(labels));
        }
    }
}

fn braced(labels: &str) -> String {
    if labels.is_empty() { String::new() } else { format!("{{{labels}}}") }
}

fn written(labels: Labels<'_>) -> String {
    let pair = |(name, value): &(&str, &str)| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{name}=\"{value}\"")
    };
    labels.iter().map(pair).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_printed() {
        let metrics = Metrics::default();
        metrics.count("policy_preemption_total", &[("result", "success")]);
        metrics.count("policy_preemption_total", &[("result", "success")]);
        metrics.count("policy_preemption_total", &[("result", "a\"b\\c\nd")]);
        metrics.observe("resource_match_policy_duration_seconds", &[], 0.003);
        let text = metrics.text();
        for line in [
            "# TYPE policy_preemption_total counter",
            "policy_preemption_total{result=\"success\"} 2",
            "policy_preemption_total{result=\"a\\\"b\\\\c\\nd\"} 1",
            "resource_match_policy_duration_seconds_bucket{le=\"0.002\"} 0",
            "resource_match_policy_duration_seconds_bucket{le=\"0.004\"} 1",
            "resource_match_policy_duration_seconds_bucket{le=\"+Inf\"} 1",
            "resource_match_policy_duration_seconds_sum 0.003",
            "resource_match_policy_duration_seconds_count 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn families_are_sorted_so_that_each_is_one_block() {
        assert!(FAMILIES.windows(2).all(|pair| pair[0].name < pair[1].name));
    }
}
