//! Is a member ready? One answer may be chance, so a change of mind has to last before it is reported.

use std::time::Duration;

use api::ConditionStatus;

/// How long a change has to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// Until a member that was not ready is called ready.
    pub success: Duration,
    /// Until a member that was ready is no longer called so.
    pub failure: Duration,
}

/// How long to wait until what is seen can be reported; none if it can be now. `lasted` says for how long
/// it has been seen. The first answer of a member is taken as it is, and so is a new reason for the same.
pub fn not_yet(
    reported: Option<ConditionStatus>,
    seen: ConditionStatus,
    lasted: Duration,
    thresholds: Thresholds,
) -> Option<Duration> {
    let reported = reported?;
    let is_ready = |status| status == ConditionStatus::True;
    if is_ready(reported) == is_ready(seen) {
        return None;
    }
    let needed = if is_ready(seen) { thresholds.success } else { thresholds.failure };
    needed.checked_sub(lasted).filter(|missing| !missing.is_zero())
}

#[cfg(test)]
mod tests {
    use ConditionStatus::{False, True, Unknown};

    use super::*;

    #[test]
    fn a_flip_has_to_last() {
        let seconds = Duration::from_secs;
        let thresholds = Thresholds { success: seconds(30), failure: seconds(20) };
        let check = |reported, seen, lasted: u64, expected: Option<u64>| {
            assert_eq!(
                not_yet(reported, seen, seconds(lasted), thresholds),
                expected.map(seconds),
                "{reported:?} {seen:?} {lasted}"
            );
        };
        check(None, False, 0, None);
        check(Some(True), True, 0, None);
        check(Some(Unknown), False, 0, None);
        check(Some(True), False, 0, Some(20));
        check(Some(True), False, 19, Some(1));
        check(Some(True), False, 20, None);
        check(Some(False), True, 20, Some(10));
        check(Some(Unknown), True, 30, None);
    }
}
