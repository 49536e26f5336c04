//! Which scenarios can be played together: those that need the same members and the same feature gates.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use scenario::Scenario;

/// Scenarios that one control plane can play one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// The gates that differ from their default, as A=true,B=false.
    pub gates: String,
    /// How many members have to have joined.
    pub members: usize,
    /// The files.
    pub files: Vec<PathBuf>,
}

/// Sorts scenarios into passes, and names those that no bed with so many members can play.
pub fn passes(files: &[PathBuf], members: usize) -> Result<(Vec<Pass>, Vec<PathBuf>)> {
    let mut sorted: BTreeMap<(String, usize), Vec<PathBuf>> = BTreeMap::new();
    let mut left_out = Vec::new();
    for path in scenario::find(files)? {
        let scenario = Scenario::read(&path)?;
        let wanted: Option<Vec<&str>> = scenario.usual_members();
        let names: Vec<String> = (1..=members).map(|number| format!("member{number}")).collect();
        let count =
            wanted.filter(|wanted| names.iter().take(wanted.len()).eq(wanted.iter())).map(|all| all.len());
        match count {
            Some(count) => {
                let gates = scenario.gates.iter().map(|(name, value)| format!("{name}={value}"));
                let gates = gates.collect::<Vec<_>>().join(",");
                sorted.entry((gates, members - count)).or_default().push(path);
            }
            None => left_out.push(path),
        }
    }
    let pass = |((gates, missing), files)| Pass { gates, members: members - missing, files };
    Ok((sorted.into_iter().map(pass).collect(), left_out))
}
