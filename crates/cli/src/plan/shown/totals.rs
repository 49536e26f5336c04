//! The totals of a plan for each cluster and each namespace, where there are several.

use std::collections::BTreeMap;

use decide::plan::{Counts, Plan, breakdown};

use crate::terminal_text::table;

/// How many clusters, and namespaces, are shown.
const ROWS_MAX: usize = 12;

/// A table by cluster and one by namespace; nothing where the totals of the plan say it all.
pub fn tables(plan: &Plan) -> String {
    let counted = breakdown(plan);
    if plan.templates.len() < 2 {
        return String::new();
    }
    [("CLUSTER", &counted.clusters), ("NAMESPACE", &counted.namespaces)]
        .into_iter()
        .filter(|(_, counts)| counts.len() > 1)
        .map(|(title, counts)| format!("\n{}", shown(title, counts)))
        .collect()
}

/// Columns in which nothing happens are left out.
fn shown(title: &str, counts: &BTreeMap<String, Counts>) -> String {
    let happens = |place: usize| counts.values().any(|counts| counts.columns()[place].1 > 0);
    let titles = Counts::default().columns().map(|(title, _)| title);
    let places: Vec<usize> = (0..titles.len()).filter(|place| happens(*place)).collect();
    let header: Vec<&str> = [title].into_iter().chain(places.iter().map(|place| titles[*place])).collect();
    let row = |(name, counts): (&String, &Counts)| {
        let name = if name.is_empty() { "<none>".to_owned() } else { name.clone() };
        let numbers = places.iter().map(|place| counts.columns()[*place].1.to_string());
        [name].into_iter().chain(numbers).collect::<Vec<String>>()
    };
    let rows: Vec<Vec<String>> = counts.iter().take(ROWS_MAX).map(row).collect();
    let more = match counts.len().saturating_sub(ROWS_MAX) {
        0 => String::new(),
        more => format!("and {more} more; -o json has each\n"),
    };
    table(&header, &rows) + &more
}
