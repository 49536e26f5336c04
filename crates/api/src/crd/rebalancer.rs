//! Schema of the rebalancer.

use super::Version;
use super::parts::reference_fields;
use super::schema::{date_time, int32, int64, list_of, object, string};

pub(super) const ABOUT: &str = "Asks the scheduler, once, to place workloads anew as if they ran nowhere \
                                yet, for example after clusters joined. It acts when it is created and when \
                                its spec changes.";

pub(super) fn rebalancer() -> Version {
    let spec = object([
        (
            "ttlSecondsAfterFinished",
            int32().about(
                "Seconds after which the finished rebalancer is deleted; 0 deletes it at once. Absent: it \
                 stays.",
            ),
        ),
        (
            "workloads",
            list_of(object(reference_fields()))
                .not_empty()
                .required()
                .about("Workloads to place anew, at least one."),
        ),
    ]);
    let observed = object([
        (
            "reason",
            string().about("Why it failed: `ReferencedBindingNotFound` where the workload has no binding."),
        ),
        (
            "result",
            string()
                .about("`Successful` when the binding was asked for a fresh placement, otherwise `Failed`."),
        ),
        ("workload", object(reference_fields()).required().about("The workload.")),
    ]);
    let status = object([
        ("finishTime", date_time().about("When every workload had its result.")),
        ("observedGeneration", int64().about("Generation of the rebalancer that the results belong to.")),
        ("observedWorkloads", list_of(observed).about("Result of each workload.")),
    ]);
    Version::stored("v1alpha1", spec, "Which workloads are placed anew.")
        .status(status, "What became of each workload.")
}
