//! The fair queue: order, slots that time out, and limits.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;

fn queue(in_flight: usize, of_one_user: usize) -> FairQueue {
    FairQueue::new(Limits { in_flight, of_one_user, watches_of_one_user: 2, watches: 3, ..Limits::default() })
}

fn user(name: &str) -> Identity {
    Identity::named(name, [])
}

#[tokio::test(start_paused = true)]
async fn slots_go_round_robin_over_users() {
    let queue = queue(1, 100);
    let mut first = queue.enter(&user("flood")).expect("room").expect("a permit");
    first.wait_for_slot().await.expect("the first is served at once");
    let order = Arc::new(Mutex::new(Vec::new()));
    let names = ["flood"; 20].into_iter().chain(["tenant", "tenant"]);
    let mut tasks = Vec::new();
    for name in names {
        let mut permit = queue.enter(&user(name)).expect("room").expect("a permit");
        let order = order.clone();
        tasks.push(tokio::spawn(async move {
            permit.wait_for_slot().await.expect("a slot");
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
    assert!(queue.with(|state| state.users.is_empty() && state.running == 0 && state.round.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn a_slot_whose_request_timed_out_is_not_lost() {
    let queue = queue(1, 100);
    let mut first = queue.enter(&user("a")).expect("room").expect("a permit");
    first.wait_for_slot().await.expect("served");
    // One gives up before its turn, one in the moment it comes.
    let mut gone = queue.enter(&user("b")).expect("room").expect("a permit");
    assert!(tokio::time::timeout(Duration::from_secs(1), gone.wait_for_slot()).await.is_err());
    drop(gone);
    let mut late = queue.enter(&user("c")).expect("room").expect("a permit");
    let mut waiting = Box::pin(late.wait_for_slot());
    assert!(futures::poll!(&mut waiting).is_pending());
    drop(first);
    drop(waiting);
    drop(late);
    assert!(queue.with(|state| state.running == 0 && state.users.is_empty()));
    let mut next = queue.enter(&user("d")).expect("room").expect("a permit");
    next.wait_for_slot().await.expect("served at once");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_or_timed_out_request_gets_429_with_retry_after() {
    let queue = queue(1, 2);
    let mut one = queue.enter(&user("a")).expect("room").expect("a permit");
    one.wait_for_slot().await.expect("served");
    let mut two = queue.enter(&user("a")).expect("room").expect("a permit");
    let refused = queue.enter(&user("a")).err().expect("no room for a third");
    assert_eq!((refused.code, refused.retry_after_seconds), (429, Some(1)));
    assert!(queue.enter(&user("b")).is_ok(), "others have room");
    assert_eq!(two.wait_for_slot().await.expect_err("its time is over").code, 429);
    let admin = Identity::named("root", [crate::authn::ADMINISTRATORS]);
    assert!(queue.enter(&admin).expect("always").is_none(), "administrators do not queue");
}

#[test]
fn watches_are_counted_by_user_and_together() {
    let queue = queue(1, 1);
    let held: Vec<_> = ["a", "a", "b"].map(|name| queue.watch(&user(name)).expect("room")).into();
    assert_eq!(queue.watch(&user("b")).err().map(|error| error.code), Some(429), "three are all");
    drop(held);
    let held = [queue.watch(&user("a")), queue.watch(&user("a"))].map(|permit| permit.expect("room"));
    assert_eq!(queue.watch(&user("a")).err().map(|error| error.code), Some(429), "two are all of one");
    drop(held);
    assert!(queue.with(|state| state.users.is_empty() && state.watches == 0));
}

/// How many pieces of work of one user were computed at once, at most.
async fn at_once(queue: &FairQueue, computed: Duration) -> usize {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let permit = queue.enter(&user("heavy")).expect("room").expect("a permit");
        let (now, most) = (now.clone(), most.clone());
        tasks.push(tokio::spawn(async move {
            let work = async {
                for _ in 0..3 {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(computed);
                    now.fetch_sub(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            permit.share(work).await;
        }));
    }
    for task in tasks {
        task.await.expect("it ends");
    }
    most.load(Ordering::SeqCst)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_several_active_users_gets_half_of_the_threads() {
    let queue = queue(100, 100);
    let computed = Duration::from_millis(20);
    assert!(at_once(&queue, computed).await > 2, "the only active user has all threads");
    drop(queue.enter(&user("light")).expect("room"));
    assert_eq!(at_once(&queue, computed).await, 2, "one of two active users has half of them");
    let root = Identity::named("root", [crate::authn::ADMINISTRATORS]);
    let fresh = self::queue(100, 100);
    at_once(&fresh, Duration::ZERO).await;
    assert!(fresh.enter(&root).expect("always").is_none());
    assert_eq!(at_once(&fresh, computed).await, 2, "administrators count as active users");
}

/// Work that waits holds no thread, so more work is in progress at once than there are threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_request_holds_no_thread() {
    let queue = queue(100, 100);
    drop(queue.enter(&user("light")).expect("room"));
    let permits: Vec<InFlightPermit> =
        (0..8).map(|_| queue.enter(&user("heavy")).expect("room").expect("a permit")).collect();
    let together = Arc::new(tokio::sync::Barrier::new(permits.len()));
    let waiting = permits.iter().map(|permit| permit.share(together.wait()));
    let all = futures::future::join_all(waiting);
    tokio::time::timeout(Duration::from_secs(5), all).await.expect("all wait at once");
    // One that is given up while it waits for a thread does not keep it from others.
    let busy = queue.with(|state| state.active_users.threads_of("heavy")).acquire_owned().await;
    let mut given_up = Box::pin(permits[0].share(async {}));
    let mut next = Box::pin(permits[1].share(async {}));
    assert!(futures::poll!(&mut given_up).is_pending() && futures::poll!(&mut next).is_pending());
    drop(busy);
    drop(given_up);
    tokio::time::timeout(Duration::from_secs(5), next).await.expect("the thread is free");
}

/// The CPU time of a connection is charged to the user of the last request on it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_uses_the_cpu_share_of_its_last_user() {
    let queue = queue(100, 100);
    let share = CpuShare::of_unauthenticated(&queue);
    let check = |may_go_on: bool, what: &str| {
        let mut work = Box::pin(share.run(async {}));
        let polled = work.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        assert_eq!(polled.is_ready(), may_go_on, "{what}");
    };
    let of = |user: &str| queue.with(|state| state.active_users.threads_of(user)).try_acquire_owned();
    let unauthenticated = of("").expect("free");
    check(false, "unauthenticated clients are busy");
    share.switch_to(Some(&user("heavy")));
    check(true, "heavy is not");
    let heavy = of("heavy").expect("free");
    check(true, "heavy is busy as well, and alone");
    share.switch_to(Some(&user("light")));
    share.switch_to(Some(&user("heavy")));
    check(false, "heavy is busy as well, and not alone");
    share.switch_to(Some(&Identity::named("root", [crate::authn::ADMINISTRATORS])));
    check(true, "administrators do not wait");
    share.switch_to(None);
    check(false, "unauthenticated again");
    share.switch_to(Some(&Identity::anonymous()));
    check(false, "anonymous is unauthenticated");
    drop((unauthenticated, heavy));
    check(true, "no user is busy");
    assert!(queue.with(|state| state.users.is_empty()));
}
