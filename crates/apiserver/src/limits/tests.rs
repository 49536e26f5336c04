//! Turns, places that nobody takes, and what is too much.

use std::time::Duration;

use super::*;

fn turns(in_flight: usize, of_one_user: usize) -> Turns {
    Turns::new(Limits { in_flight, of_one_user, watches_of_one_user: 2, watches: 3, ..Limits::default() })
}

fn user(name: &str) -> Identity {
    Identity::named(name, [])
}

#[tokio::test(start_paused = true)]
async fn users_take_turns_whatever_the_length_of_their_queues() {
    let turns = turns(1, 100);
    let mut first = turns.enter(&user("flood")).expect("room").expect("a place");
    first.turn().await.expect("the first is served at once");
    let order = Arc::new(Mutex::new(Vec::new()));
    let names = ["flood"; 20].into_iter().chain(["tenant", "tenant"]);
    let mut tasks = Vec::new();
    for name in names {
        let mut place = turns.enter(&user(name)).expect("room").expect("a place");
        let order = order.clone();
        tasks.push(tokio::spawn(async move {
            place.turn().await.expect("a turn");
            order.lock().expect("no one panics").push(name);
        }));
        tokio::task::yield_now().await;
    }
    drop(first);
    for task in tasks {
        task.await.expect("served");
    }
    let order = order.lock().expect("no one panics").clone();
    let last = order.iter().rposition(|name| *name == "tenant").expect("the tenant was served");
    assert!(last < 5, "{order:?}");
    assert!(turns.with(|state| state.users.is_empty() && state.running == 0 && state.round.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn a_place_that_nobody_takes_is_not_lost() {
    let turns = turns(1, 100);
    let mut first = turns.enter(&user("a")).expect("room").expect("a place");
    first.turn().await.expect("served");
    // One gives up before its turn, one in the moment it comes.
    let mut gone = turns.enter(&user("b")).expect("room").expect("a place");
    assert!(tokio::time::timeout(Duration::from_secs(1), gone.turn()).await.is_err());
    drop(gone);
    let mut late = turns.enter(&user("c")).expect("room").expect("a place");
    let mut turn = Box::pin(late.turn());
    assert!(futures::poll!(&mut turn).is_pending());
    drop(first);
    drop(turn);
    drop(late);
    assert!(turns.with(|state| state.running == 0 && state.users.is_empty()));
    let mut next = turns.enter(&user("d")).expect("room").expect("a place");
    next.turn().await.expect("served at once");
}

#[tokio::test(start_paused = true)]
async fn who_asks_for_too_much_or_waits_too_long_is_told_when_to_come_back() {
    let turns = turns(1, 2);
    let mut one = turns.enter(&user("a")).expect("room").expect("a place");
    one.turn().await.expect("served");
    let mut two = turns.enter(&user("a")).expect("room").expect("a place");
    let refused = turns.enter(&user("a")).err().expect("no room for a third");
    assert_eq!((refused.code, refused.retry_after_seconds), (429, Some(1)));
    assert!(turns.enter(&user("b")).is_ok(), "others have room");
    assert_eq!(two.turn().await.expect_err("its time is over").code, 429);
    let admin = Identity::named("root", [crate::auth::ADMINISTRATORS]);
    assert!(turns.enter(&admin).expect("always").is_none(), "administrators do not queue");
}

#[test]
fn watches_are_counted_by_user_and_together() {
    let turns = turns(1, 1);
    let held: Vec<_> = ["a", "a", "b"].map(|name| turns.watch(&user(name)).expect("room")).into();
    assert_eq!(turns.watch(&user("b")).err().map(|error| error.code), Some(429), "three are all");
    drop(held);
    let held = [turns.watch(&user("a")), turns.watch(&user("a"))].map(|place| place.expect("room"));
    assert_eq!(turns.watch(&user("a")).err().map(|error| error.code), Some(429), "two are all of one");
    drop(held);
    assert!(turns.with(|state| state.users.is_empty() && state.watches == 0));
}
