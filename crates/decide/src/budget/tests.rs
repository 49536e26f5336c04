//! What is counted against which limit.

use super::*;

#[test]
fn the_stricter_limit_counts_and_the_usual_one_where_there_is_none() {
    let budget = |moved: Option<usize>, deleted: Option<usize>| Budget { moved, deleted };
    let check = |one: Budget, two: Budget, usual: Budget, expected: Budget| {
        assert_eq!(one.stricter(two).or(usual), expected);
    };
    check(budget(None, None), budget(None, None), budget(None, None), budget(None, None));
    check(budget(Some(5), None), budget(Some(2), None), budget(Some(1), Some(7)), budget(Some(2), Some(7)));
    check(budget(None, Some(0)), budget(None, None), budget(Some(3), None), budget(Some(3), Some(0)));
}

#[test]
fn an_excess_says_what_there_is_too_much_of() {
    let check = |effects: (usize, usize), expected: Option<&str>| {
        let budget = Budget { moved: Some(2), deleted: Some(3) };
        let effects = Effects { moved: effects.0, deleted: effects.1 };
        let excess = effects.beyond(budget, None).map(|excess| excess.to_string());
        assert_eq!(excess.as_deref(), expected);
    };
    check((2, 3), None);
    check((3, 9), Some("it would move 3 templates, and longshore.io/max-moved allows 2"));
    check((0, 4), Some("it would delete 4 objects, and longshore.io/max-deleted allows 3"));
}
