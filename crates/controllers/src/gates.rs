//! Reads `--feature-gates A=true,B=false`, by Karmada's names. What the gates do is decided elsewhere.

use std::collections::BTreeMap;

use decide::left_out::Unreadable;
use decide::{Gates, LeftOut};

/// Every switch of the control plane. All of them change decisions today.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Switches {
    /// Those that `decide` asks for.
    pub gates: Gates,
}

/// Why a list of gates cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No gate has this name.
    #[error("unknown feature gate {name:?}; known are {}", known().join(", "))]
    Unknown {
        /// The name.
        name: String,
    },
    /// An item is not `Name=true` or `Name=false`.
    #[error("{item:?} is not of the form Name=true or Name=false")]
    Malformed {
        /// The item.
        item: String,
    },
    /// Karmada has this gate; here its value cannot be changed.
    #[error("feature gate {name} is always {fixed} in Longshore")]
    Fixed {
        /// The name.
        name: &'static str,
        /// The value it has.
        fixed: bool,
    },
}

/// Where the value of a gate lives.
type Switch = fn(&mut Switches) -> &mut bool;

/// Gates that can be switched.
const SWITCHES: [(&str, Switch); 7] = [
    ("Failover", |switches| &mut switches.gates.failover),
    ("MultiplePodTemplatesScheduling", |switches| &mut switches.gates.components),
    ("PriorityBasedScheduling", |switches| &mut switches.gates.schedule_priority),
    ("PropagateDeps", |switches| &mut switches.gates.propagate_deps),
    ("PropagationPolicyPreemption", |switches| &mut switches.gates.preemption),
    ("StaticPolicy", |switches| &mut switches.gates.static_policy),
    ("WorkloadAffinity", |switches| &mut switches.gates.workload_affinity),
];

/// What Karmada's controllers call the lists of what is left out.
const NAMESPACES_LEFT_OUT: &str = "skipped-propagating-namespaces";
const KINDS_LEFT_OUT: &str = "skipped-propagating-apis";

/// Karmada's other gates, with the value that Longshore behaves by. Naming one with that value is fine, so
/// that a Karmada command line can be taken over.
const FIXED: [(&str, bool); 8] = [
    ("ControllerPriorityQueue", true),
    ("CustomizedClusterResourceModeling", true),
    ("FederatedQuotaEnforcement", false),
    ("GracefulEviction", true),
    ("MultiClusterService", false),
    ("ResourceQuotaEstimate", false),
    ("SchedulingOvercommitProtection", false),
    ("StatefulFailoverInjection", false),
];

/// Reads a list of gates; those that are not named keep their default.
pub fn parse(text: &str) -> Result<Switches, Error> {
    let mut switches = Switches::default();
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let malformed = || Error::Malformed { item: item.to_owned() };
        let (name, value) = item.split_once('=').ok_or_else(malformed)?;
        let value = value.parse::<bool>().map_err(|_| malformed())?;
        set(&mut switches, name, value)?;
    }
    Ok(switches)
}

fn set(switches: &mut Switches, name: &str, value: bool) -> Result<(), Error> {
    if let Some((_, switch)) = SWITCHES.iter().find(|(known, _)| *known == name) {
        *switch(switches) = value;
        return Ok(());
    }
    match FIXED.iter().find(|(known, _)| *known == name) {
        Some((_, fixed)) if *fixed == value => Ok(()),
        Some((name, fixed)) => Err(Error::Fixed { name, fixed: *fixed }),
        None => Err(Error::Unknown { name: name.to_owned() }),
    }
}

impl Switches {
    /// What was told by [`Switches::told`]; names that a newer control plane has and we do not know are its own.
    /// Whoever writes that by hand, to plan before the controllers run, must not be misunderstood.
    pub fn heard(told: &BTreeMap<String, String>) -> Result<Self, Unreadable> {
        let mut switches = Switches::default();
        for (name, switch) in SWITCHES {
            if let Some(value) = told.get(name).and_then(|value| value.parse().ok()) {
                *switch(&mut switches) = value;
            }
        }
        let list = |name: &str| told.get(name).map_or("", String::as_str);
        switches.gates.left_out = LeftOut::read(list(NAMESPACES_LEFT_OUT), list(KINDS_LEFT_OUT))?;
        Ok(switches)
    }

    /// Every gate and its value, and what is left out, for others to read.
    pub fn told(&self) -> BTreeMap<String, String> {
        let mut switches = self.clone();
        let gates = SWITCHES.iter().map(|(name, switch)| (*name, switch(&mut switches).to_string()));
        let mut told: BTreeMap<String, String> =
            gates.map(|(name, value)| (name.to_owned(), value)).collect();
        // Also that nothing is, because somebody else may have written that something is.
        told.extend(self.left_out().map(|(name, list)| (name.to_owned(), list.to_owned())));
        told
    }

    /// What differs from its default, as `Name=value`: gates, sorted, and what is left out.
    pub fn changed(&self) -> Vec<String> {
        let (mut switches, mut defaults) = (self.clone(), Switches::default());
        let differs = |(name, switch): &(&str, Switch)| {
            let value = *switch(&mut switches);
            (value != *switch(&mut defaults)).then(|| format!("{name}={value}"))
        };
        let gates = SWITCHES.iter().filter_map(differs);
        let left_out = self.left_out().filter(|(_, list)| !list.is_empty());
        let left_out = left_out.map(|(name, list)| format!("{name}={list}"));
        gates.chain(left_out).collect()
    }

    fn left_out(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let (namespaces, kinds) = self.gates.left_out.texts();
        [(NAMESPACES_LEFT_OUT, namespaces), (KINDS_LEFT_OUT, kinds)].into_iter()
    }
}

/// Every name that is understood, sorted.
fn known() -> Vec<&'static str> {
    let mut names: Vec<&str> =
        SWITCHES.iter().map(|(name, _)| *name).chain(FIXED.iter().map(|(name, _)| *name)).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&[&str], &str>) {
        let found = parse(text).map(|switches| switches.changed()).map_err(|error| error.to_string());
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
            (Err(found), Err(expected)) => assert!(found.starts_with(expected), "{text}: {found}"),
            (found, expected) => panic!("{text}: {found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn what_is_told_is_what_is_heard() {
        let switches = parse("StaticPolicy=true,Failover=false").expect("known gates");
        let mut told = switches.told();
        assert_eq!(Switches::heard(&told), Ok(switches));
        told.insert("OfTomorrow".to_owned(), "true".to_owned());
        told.remove("Failover");
        assert_eq!(Switches::heard(&told), Ok(parse("StaticPolicy=true").expect("a known gate")));
        assert_eq!(Switches::heard(&BTreeMap::new()), Ok(Switches::default()));
        let left_out = LeftOut::read("lab-.*,velero", "v1/Secret").expect("readable");
        let switches = Switches { gates: Gates { left_out, ..Gates::default() } };
        assert_eq!(Switches::heard(&switches.told()).as_ref(), Ok(&switches));
        let changed = ["skipped-propagating-namespaces=lab-.*,velero", "skipped-propagating-apis=v1/Secret"];
        assert_eq!(switches.changed(), changed);
    }

    #[test]
    fn gates_are_read_by_karmadas_names() {
        check("", Ok(&[]));
        check("StaticPolicy=true", Ok(&["StaticPolicy=true"]));
        check(
            " Failover=false, PropagationPolicyPreemption=false",
            Ok(&["Failover=false", "PropagationPolicyPreemption=false"]),
        );
        check("PropagationPolicyPreemption=true,GracefulEviction=true", Ok(&[]));
        check("PropagateDeps=false,PropagateDeps=true", Ok(&[]));
        check("GracefulEviction=false", Err("feature gate GracefulEviction is always true"));
        check(
            "PolicyPreemption=true",
            Err("unknown feature gate \"PolicyPreemption\"; known are ControllerPriorityQueue, "),
        );
        check("StaticPolicy", Err("\"StaticPolicy\" is not of the form"));
        check("StaticPolicy=yes", Err("\"StaticPolicy=yes\" is not of the form"));
    }
}
