//! Feature gates and other settings of the whole control plane, by the flags of Karmada's controllers.

use anyhow::Result;
use controllers::gates::{self, FeatureGates};
use decide::SkippedResources;
use plane::restart::HeldStart;

/// Flags of whatever runs the controllers.
#[derive(clap::Args)]
pub struct SwitchFlags {
    /// Feature gates, with Karmada's names: StaticPolicy=true,Failover=false
    #[arg(long, value_name = "GATES", default_value = "", value_parser = gates::parse, hide_default_value = true)]
    feature_gates: FeatureGates,
    /// Namespaces that are not created in members and whose objects no policy propagates, besides the system namespaces
    /// of Kubernetes and Longshore: regular expressions for the whole name, such as velero,team-.*-lab
    #[arg(long, value_name = "NAMES", value_parser = namespaces)]
    skipped_propagating_namespaces: Vec<String>,
    /// Kinds that no policy propagates: group, group/version or group/version/Kind,Kind, separated by semicolons
    #[arg(long, value_name = "KINDS", default_value = "", value_parser = kinds, hide_default_value = true)]
    skipped_propagating_apis: String,
    /// Start the controllers even if changed feature gates move or delete more than the change budget allows; with a
    /// DIGEST, only if the plan still has the digest that the earlier start printed
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, default_missing_value = "", require_equals = true)]
    accept: Option<String>,
}

impl SwitchFlags {
    /// Whether a start that would do this much is accepted.
    pub fn accepts(&self, held: &HeldStart) -> bool {
        self.accept.as_ref().is_some_and(|digest| digest.is_empty() || *digest == held.digest)
    }

    /// All of them.
    pub fn feature_gates(&self) -> Result<FeatureGates> {
        let mut feature_gates = self.feature_gates.clone();
        feature_gates.gates.skipped = SkippedResources::read(
            &self.skipped_propagating_namespaces.join(","),
            &self.skipped_propagating_apis,
        )?;
        Ok(feature_gates)
    }
}

fn namespaces(text: &str) -> Result<String, decide::skipped::Unreadable> {
    SkippedResources::read(text, "").map(|_| text.to_owned())
}

fn kinds(text: &str) -> Result<String, decide::skipped::Unreadable> {
    SkippedResources::read("", text).map(|_| text.to_owned())
}
