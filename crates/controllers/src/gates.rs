//! Feature gates: parses `--feature-gates A=true,B=false`, by Karmada's names. Other modules implement what a gate
//! does.

use std::collections::BTreeMap;

use decide::skipped::Unreadable;
use decide::{Gates, SkippedResources};

/// Every feature gate of the control plane. All of them change decisions today.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeatureGates {
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
type GateField = fn(&mut FeatureGates) -> &mut bool;

/// Gates that can be switched.
const CONFIGURABLE: [(&str, GateField); 7] = [
    ("Failover", |feature_gates| &mut feature_gates.gates.failover),
    ("MultiplePodTemplatesScheduling", |feature_gates| &mut feature_gates.gates.components),
    ("PriorityBasedScheduling", |feature_gates| &mut feature_gates.gates.schedule_priority),
    ("PropagateDeps", |feature_gates| &mut feature_gates.gates.propagate_deps),
    ("PropagationPolicyPreemption", |feature_gates| &mut feature_gates.gates.preemption),
    ("StaticPolicy", |feature_gates| &mut feature_gates.gates.static_policy),
    ("WorkloadAffinity", |feature_gates| &mut feature_gates.gates.workload_affinity),
];

/// The names of Karmada's flags for skipped namespaces and kinds.
const SKIPPED_NAMESPACES_FLAG: &str = "skipped-propagating-namespaces";
const SKIPPED_KINDS_FLAG: &str = "skipped-propagating-apis";

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
pub fn parse(text: &str) -> Result<FeatureGates, Error> {
    let mut feature_gates = FeatureGates::default();
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let malformed = || Error::Malformed { item: item.to_owned() };
        let (name, value) = item.split_once('=').ok_or_else(malformed)?;
        let value = value.parse::<bool>().map_err(|_| malformed())?;
        set(&mut feature_gates, name, value)?;
    }
    Ok(feature_gates)
}

fn set(feature_gates: &mut FeatureGates, name: &str, value: bool) -> Result<(), Error> {
    if let Some((_, field)) = CONFIGURABLE.iter().find(|(known, _)| *known == name) {
        *field(feature_gates) = value;
        return Ok(());
    }
    match FIXED.iter().find(|(known, _)| *known == name) {
        Some((_, fixed)) if *fixed == value => Ok(()),
        Some((name, fixed)) => Err(Error::Fixed { name, fixed: *fixed }),
        None => Err(Error::Unknown { name: name.to_owned() }),
    }
}

impl FeatureGates {
    /// Parses the output of [`FeatureGates::to_map`]; unknown names belong to a newer control plane and are ignored. A
    /// list that cannot be parsed is an error: a user may have written it by hand, to plan before the controllers run.
    pub fn from_map(map: &BTreeMap<String, String>) -> Result<Self, Unreadable> {
        let mut feature_gates = FeatureGates::default();
        for (name, field) in CONFIGURABLE {
            if let Some(value) = map.get(name).and_then(|value| value.parse().ok()) {
                *field(&mut feature_gates) = value;
            }
        }
        let list = |name: &str| map.get(name).map_or("", String::as_str);
        feature_gates.gates.skipped =
            SkippedResources::read(list(SKIPPED_NAMESPACES_FLAG), list(SKIPPED_KINDS_FLAG))?;
        Ok(feature_gates)
    }

    /// Every gate with its value, and the skipped namespaces and kinds, for other processes to read.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        let mut feature_gates = self.clone();
        let gates = CONFIGURABLE.iter().map(|(name, field)| (*name, field(&mut feature_gates).to_string()));
        let mut map: BTreeMap<String, String> = gates.map(|(name, value)| (name.to_owned(), value)).collect();
        // Empty lists are written as well, because an earlier writer may have set them.
        map.extend(self.skipped().map(|(name, list)| (name.to_owned(), list.to_owned())));
        map
    }

    /// The gates that differ from their default, as `Name=value`, sorted, then the skipped namespaces and kinds.
    pub fn changed(&self) -> Vec<String> {
        let (mut feature_gates, mut defaults) = (self.clone(), FeatureGates::default());
        let differs = |(name, field): &(&str, GateField)| {
            let value = *field(&mut feature_gates);
            (value != *field(&mut defaults)).then(|| format!("{name}={value}"))
        };
        let gates = CONFIGURABLE.iter().filter_map(differs);
        let skipped = self.skipped().filter(|(_, list)| !list.is_empty());
        let skipped = skipped.map(|(name, list)| format!("{name}={list}"));
        gates.chain(skipped).collect()
    }

    fn skipped(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let (namespaces, kinds) = self.gates.skipped.texts();
        [(SKIPPED_NAMESPACES_FLAG, namespaces), (SKIPPED_KINDS_FLAG, kinds)].into_iter()
    }
}

/// Every name that is understood, sorted.
fn known() -> Vec<&'static str> {
    let mut names: Vec<&str> =
        CONFIGURABLE.iter().map(|(name, _)| *name).chain(FIXED.iter().map(|(name, _)| *name)).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&[&str], &str>) {
        let found =
            parse(text).map(|feature_gates| feature_gates.changed()).map_err(|error| error.to_string());
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
            (Err(found), Err(expected)) => assert!(found.starts_with(expected), "{text}: {found}"),
            (found, expected) => panic!("{text}: {found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn gates_survive_the_config_map() {
        let feature_gates = parse("StaticPolicy=true,Failover=false").expect("known gates");
        let mut map = feature_gates.to_map();
        assert_eq!(FeatureGates::from_map(&map), Ok(feature_gates));
        map.insert("OfTomorrow".to_owned(), "true".to_owned());
        map.remove("Failover");
        assert_eq!(FeatureGates::from_map(&map), Ok(parse("StaticPolicy=true").expect("a known gate")));
        assert_eq!(FeatureGates::from_map(&BTreeMap::new()), Ok(FeatureGates::default()));
        let skipped = SkippedResources::read("lab-.*,velero", "v1/Secret").expect("readable");
        let feature_gates = FeatureGates { gates: Gates { skipped, ..Gates::default() } };
        assert_eq!(FeatureGates::from_map(&feature_gates.to_map()).as_ref(), Ok(&feature_gates));
        let changed = ["skipped-propagating-namespaces=lab-.*,velero", "skipped-propagating-apis=v1/Secret"];
        assert_eq!(feature_gates.changed(), changed);
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
