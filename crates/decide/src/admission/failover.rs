//! Validation of failover behaviour.

use api::failover::{Failover, PurgeMode, StatePreservation};

use super::{Findings, syntax};

/// Everything a policy says about failing clusters and applications.
pub(super) fn check(failover: &Failover, propagate_deps: bool, findings: &mut Findings) {
    let path = "spec.failover";
    if let Some(application) = &failover.application {
        let path = format!("{path}.application");
        if !propagate_deps {
            findings.refuse("spec.propagateDeps", format!("must be true while {path} is set"));
        }
        let seconds = application.decision_conditions.toleration_seconds;
        if seconds.is_some_and(|seconds| seconds < 0) {
            findings.refuse(
                format!("{path}.decisionConditions.tolerationSeconds"),
                "must not be negative; 0 acts at once, 300 is the default",
            );
        }
        grace(&path, application.purge_mode.unwrap_or_default(), application.grace_period_seconds, findings);
        if application.evict_last_copy == Some(true) && application.purge_mode == Some(PurgeMode::Never) {
            findings.refuse(
                format!("{path}.evictLastCopy"),
                "must not be true while purgeMode is Never, which keeps every copy until it is removed by hand",
            );
        }
        preservation(&path, application.state_preservation.as_ref(), findings);
    }
    if let Some(cluster) = &failover.cluster {
        preservation(&format!("{path}.cluster"), cluster.state_preservation.as_ref(), findings);
    }
}

fn grace(path: &str, mode: PurgeMode, seconds: Option<i32>, findings: &mut Findings) {
    let path = format!("{path}.gracePeriodSeconds");
    let graceful = matches!(mode, PurgeMode::Gracefully | PurgeMode::Graciously);
    match (graceful, seconds) {
        (true, Some(seconds)) if seconds <= 0 => {
            findings.refuse(path, "must be greater than 0, 600 is the default")
        }
        (true, None) => findings.refuse(path, "must be set when purgeMode is Gracefully, for example 600"),
        (false, Some(_)) => findings.refuse(path, "must be left out unless purgeMode is Gracefully"),
        _ => {}
    }
}

fn preservation(path: &str, rules: Option<&StatePreservation>, findings: &mut Findings) {
    for (index, rule) in rules.iter().flat_map(|rules| rules.rules.iter()).enumerate() {
        if !syntax::is_label_key(&rule.alias_label_name) {
            findings.refuse(
                format!("{path}.statePreservation.rules[{index}].aliasLabelName"),
                format!(
                    "{:?} is not a label key; write for example example.com/last-state",
                    rule.alias_label_name
                ),
            );
        }
    }
}
