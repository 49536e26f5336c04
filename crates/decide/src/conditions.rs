//! Sets conditions: lastTransitionTime moves only when the status does, so an unchanged condition is no write (C6).

use api::{Condition, ConditionStatus};
use jiff::Timestamp;

/// Puts a condition into the list, in place of the one of the same type.
pub fn set(conditions: &mut Vec<Condition>, new: Condition, now: Timestamp) {
    let Some(old) = conditions.iter_mut().find(|old| old.kind == new.kind) else {
        conditions.push(Condition { last_transition_time: Some(now.into()), ..new });
        return;
    };
    let moved = old.status != new.status || old.last_transition_time.is_none();
    let last_transition_time = if moved { Some(now.into()) } else { old.last_transition_time };
    *old = Condition { last_transition_time, ..new };
}

/// The status of a condition; none if it was never set.
pub fn status(conditions: &[Condition], kind: &str) -> Option<ConditionStatus> {
    find(conditions, kind).map(|condition| condition.status)
}

/// The condition of a type; none if it was never set.
pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.kind == kind)
}

/// A condition without time, ready for [`set`].
pub fn condition(kind: &str, status: ConditionStatus, reason: &str, message: &str) -> Condition {
    Condition {
        kind: kind.to_owned(),
        status,
        reason: reason.to_owned(),
        message: message.to_owned(),
        ..Condition::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c6_the_time_moves_with_the_status_only() {
        let at = |second: i64| Timestamp::from_second(second).expect("a time");
        let mut conditions = Vec::new();
        set(&mut conditions, condition("A", ConditionStatus::True, "r1", "m1"), at(1));
        let first = conditions.clone();
        set(&mut conditions, condition("A", ConditionStatus::True, "r1", "m1"), at(2));
        assert_eq!(conditions, first, "the same news is no change");
        set(&mut conditions, condition("A", ConditionStatus::False, "r2", "m2"), at(3));
        assert_eq!(conditions[0].last_transition_time, Some(at(3).into()));
        assert_eq!(status(&conditions, "A"), Some(ConditionStatus::False));
        assert_eq!(status(&conditions, "B"), None);
    }
}
