//! Validation of placements: affinities, spread constraints, tolerations, workload affinity.

use std::collections::BTreeSet;

use api::placement::{
    ClusterAffinityTerm, DynamicWeight, FieldSelector, ReplicaDivisionPreference, ReplicaSchedulingType,
    SpreadConstraint, SpreadField, WorkloadAffinity,
};
use api::selector::Operator;
use api::{ClusterAffinity, Placement};

use super::{Findings, syntax};

const PATH: &str = "spec.placement";

/// Everything a policy says about where.
pub(super) fn check(placement: &Placement, findings: &mut Findings) {
    if placement.cluster_affinity.is_some() && !placement.cluster_affinities.is_empty() {
        findings.refuse(PATH, "clusterAffinity and clusterAffinities cannot co-exist; keep one of them");
    }
    if let Some(affinity) = &placement.cluster_affinity {
        fields(&format!("{PATH}.clusterAffinity.fieldSelector"), affinity.field_selector.as_ref(), findings);
    }
    terms(placement, findings);
    spread(&placement.spread_constraints, findings);
    for (index, toleration) in placement.cluster_tolerations.iter().enumerate() {
        if matches!(toleration.operator.as_str(), "Lt" | "Gt") {
            findings.refuse(
                format!("{PATH}.clusterTolerations[{index}].operator"),
                format!("{} is not supported; use Exists or Equal", toleration.operator),
            );
        }
    }
    if let Some(wanted) = &placement.workload_affinity {
        workload_affinity(wanted, findings);
    }
}

/// Clusters are selected by provider, region and zone, with `In` and `NotIn`.
pub(super) fn fields(path: &str, selector: Option<&FieldSelector>, findings: &mut Findings) {
    let expressions = selector.iter().flat_map(|selector| selector.match_expressions.iter());
    for (index, requirement) in expressions.enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        if !["provider", "region", "zone"].contains(&requirement.key.as_str()) {
            findings.refuse(
                format!("{path}.key"),
                format!("{:?} is not supported; use provider, region or zone", requirement.key),
            );
        }
        if !matches!(requirement.operator, Operator::In | Operator::NotIn) {
            findings.refuse(format!("{path}.operator"), "only In and NotIn are supported");
        }
    }
}

fn terms(placement: &Placement, findings: &mut Findings) {
    let mut names = BTreeSet::new();
    for (index, term) in placement.cluster_affinities.iter().enumerate() {
        let path = format!("{PATH}.clusterAffinities[{index}]");
        name(&path, &term.affinity_name, &mut names, findings);
        fields(&format!("{path}.fieldSelector"), term.affinity.field_selector.as_ref(), findings);
        overflow(placement, &path, term, &mut names, findings);
    }
}

fn name<'n>(path: &str, written: &'n str, names: &mut BTreeSet<&'n str>, findings: &mut Findings) {
    let path = format!("{path}.affinityName");
    if written.len() > 32 || !syntax::is_label_key(written) {
        findings.refuse(
            &path,
            format!("{written:?} must be 1 to 32 characters of a label key, for example primary"),
        );
    }
    if !names.insert(written) {
        findings.refuse(path, format!("{written:?} is used twice; each affinity needs a name of its own"));
    }
}

fn overflow<'t>(
    placement: &Placement,
    path: &str,
    term: &'t ClusterAffinityTerm,
    names: &mut BTreeSet<&'t str>,
    findings: &mut Findings,
) {
    if term.overflow_affinities.is_empty() {
        return;
    }
    let path = format!("{path}.overflowAffinities");
    if !divides_by_capacity(placement) {
        findings.refuse(
            &path,
            "works only with replicaDivisionPreference Aggregated or weightPreference.dynamicWeight",
        );
    }
    if term.affinity == ClusterAffinity::default() {
        findings.refuse(
            &path,
            "needs an affinity beside it that selects some clusters, for example clusterNames",
        );
    }
    for (index, other) in term.overflow_affinities.iter().enumerate() {
        let path = format!("{path}[{index}]");
        name(&path, &other.affinity_name, names, findings);
        fields(&format!("{path}.fieldSelector"), other.affinity.field_selector.as_ref(), findings);
    }
}

fn divides_by_capacity(placement: &Placement) -> bool {
    let Some(scheduling) = &placement.replica_scheduling else { return false };
    let divided = scheduling.replica_scheduling_type != Some(ReplicaSchedulingType::Duplicated);
    let aggregated = scheduling.replica_division_preference == Some(ReplicaDivisionPreference::Aggregated);
    let weights = scheduling.weight_preference.as_ref();
    let dynamic =
        weights.is_some_and(|weights| weights.dynamic_weight == Some(DynamicWeight::AvailableReplicas));
    divided && (aggregated || dynamic)
}

fn spread(constraints: &[SpreadConstraint], findings: &mut Findings) {
    let (mut seen, mut twice) = (BTreeSet::new(), BTreeSet::new());
    for (index, constraint) in constraints.iter().enumerate() {
        let path = format!("{PATH}.spreadConstraints[{index}]");
        groups(&path, constraint, findings);
        if let Some(field) = constraint.spread_by_field {
            if !constraint.spread_by_label.is_empty() {
                findings.refuse(&path, "spreadByField and spreadByLabel cannot co-exist; keep one of them");
            }
            if !seen.insert(field) && twice.insert(field) {
                let name = format!("{field:?}").to_lowercase();
                findings.refuse(
                    format!("{PATH}.spreadConstraints"),
                    format!("spreadByField: {name} is given twice; merge the two"),
                );
            }
        }
    }
    if !seen.is_empty() && !seen.contains(&SpreadField::Cluster) {
        findings.refuse(
            format!("{PATH}.spreadConstraints"),
            "a constraint with spreadByField: cluster must be among them, for example {spreadByField: cluster, minGroups: 1}",
        );
    }
}

fn groups(path: &str, constraint: &SpreadConstraint, findings: &mut Findings) {
    let (least, most) = (constraint.min_groups, constraint.max_groups);
    if least < 0 || most < 0 {
        findings
            .refuse(path, "minGroups and maxGroups must not be negative; leave maxGroups out for no bound");
    } else if 0 < most && most < least {
        findings.refuse(path, format!("maxGroups {most} is less than minGroups {least}"));
    }
}

fn workload_affinity(wanted: &WorkloadAffinity, findings: &mut Findings) {
    let path = format!("{PATH}.workloadAffinity");
    for (field, group) in [("affinity", &wanted.affinity), ("antiAffinity", &wanted.anti_affinity)] {
        let Some(group) = group else { continue };
        if !syntax::is_label_key(&group.group_by_label_key) {
            findings.refuse(
                format!("{path}.{field}.groupByLabelKey"),
                format!(
                    "{:?} is not a label key; write for example app.example.com/team",
                    group.group_by_label_key
                ),
            );
        }
    }
    if wanted.affinity.is_some() && wanted.affinity == wanted.anti_affinity {
        findings.refuse(path, "affinity and antiAffinity cannot use the same groupByLabelKey");
    }
}
