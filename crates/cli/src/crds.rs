//! `longshore crds`: prints the definitions of every kind, for who installs them by other means.

use anyhow::{Context as _, Result};

use crate::output;

/// Prints all of them as one YAML stream.
pub fn run() -> Result<()> {
    for definition in api::crd::crds() {
        let text = serde_saphyr::to_string(&definition).context("write a definition")?;
        output::print(&format!("---\n{text}"))?;
    }
    Ok(())
}
