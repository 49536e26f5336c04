//! What is set for the whole control plane, by the flags of Karmada's controllers.

use anyhow::Result;
use controllers::gates::{self, Switches};
use decide::LeftOut;

/// Flags of whatever runs the controllers.
#[derive(clap::Args)]
pub struct SwitchFlags {
    /// Switches by Karmada's names: StaticPolicy=true,Failover=false
    #[arg(long, value_name = "GATES", default_value = "", value_parser = gates::parse, hide_default_value = true)]
    feature_gates: Switches,
    /// Namespaces that do not go to members by themselves and out of which no policy takes anything, besides Kubernetes'
    /// and our own, as regular expressions of whole names: velero,team-.*-lab
    #[arg(long, value_name = "NAMES", value_parser = namespaces)]
    skipped_propagating_namespaces: Vec<String>,
    /// Kinds that no policy takes, as group, group/version or group/version/Kind,Kind with semicolons between them
    #[arg(long, value_name = "KINDS", default_value = "", value_parser = kinds, hide_default_value = true)]
    skipped_propagating_apis: String,
}

impl SwitchFlags {
    /// All of them.
    pub fn switches(&self) -> Result<Switches> {
        let mut switches = self.feature_gates.clone();
        switches.gates.left_out =
            LeftOut::read(&self.skipped_propagating_namespaces.join(","), &self.skipped_propagating_apis)?;
        Ok(switches)
    }
}

fn namespaces(text: &str) -> Result<String, decide::left_out::Unreadable> {
    LeftOut::read(text, "").map(|_| text.to_owned())
}

fn kinds(text: &str) -> Result<String, decide::left_out::Unreadable> {
    LeftOut::read("", text).map(|_| text.to_owned())
}
