//! `kill -9` at random points of a long random run of user actions: everything ends as it does without kills,
//! step by step; nothing suspended is written and nothing lazy moves. `LONGSHORE_PIPELINE_KILLS` says how often
//! it is killed, `LONGSHORE_PIPELINE_SEED` repeats the actions of a run.

use std::io::Write as _;
use std::time::{Duration, Instant};

use checks::random::SeededRandom;

mod actions;
mod promises;
mod side;
mod state;

use actions::{Action, Plan};
use side::Side;
use state::State;

/// How long both sides may take to become the same.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

fn kills() -> usize {
    std::env::var("LONGSHORE_PIPELINE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(30)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_control_plane_ends_where_an_unharmed_one_does() {
    let mut random = SeededRandom::from_environment("LONGSHORE_PIPELINE_SEED");
    let mut chance = random.fork();
    let (unharmed, mut killed) = (Side::start(), Side::start());
    let mut plan = Plan::default();
    let mut before = together(&unharmed, &killed, "the start").await;
    let (mut steps, mut left) = (0, kills());
    while left > 0 {
        let action = plan.next(&mut random, &before);
        let since = second();
        unharmed.act(&action).await;
        left -= act_and_kill(&mut killed, &action, &mut chance, left).await;
        let after = together(&unharmed, &killed, &format!("step {steps}, {action:?}")).await;
        promises::check(&action, &before, &after);
        before = after;
        steps += 1;
        // Which of two came first follows from timestamps of the API server, which have whole seconds (R3).
        while second() == since {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    killed.restart();
    together(&unharmed, &killed, "the last restart").await;
    quiet_restart(&mut killed).await;
    let objects: usize = before.members.values().map(|member| member.len()).sum();
    let said = format!("{} kills in {steps} actions; {objects} member objects in the end\n", kills());
    // The test harness captures what the macros print.
    let _ = std::io::stderr().write_all(said.as_bytes());
}

fn second() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.expect("it is later than 1970").as_secs()
}

/// Does something and kills the server while it is done or while it has its effects; says how often.
async fn act_and_kill(side: &mut Side, action: &Action, chance: &mut SeededRandom, left: usize) -> usize {
    let kills = usize::try_from(chance.below(4)).expect("small").min(left);
    for _ in 0..kills {
        // Short delays hit the request, longer ones the reconciles that it causes.
        let longest = 1 << (8 + chance.below(12));
        let moment = Duration::from_micros(chance.below(longest));
        let doing = tokio::spawn(side.doing(action.clone()));
        tokio::time::sleep(moment).await;
        side.restart();
        // It may have failed with the server; it is done again.
        let _ = doing.await;
    }
    side.act(action).await;
    kills
}

/// Waits until both sides have nothing left to do and are the same.
async fn together(one: &Side, other: &Side, when: &str) -> State {
    let begun = Instant::now();
    loop {
        let (settled, also) = tokio::join!(one.settled(), other.settled());
        if settled && also {
            let (expected, found) = tokio::join!(State::of(one), State::of(other));
            if expected.comparable() == found.comparable() {
                return found;
            }
            assert!(begun.elapsed() < STEP_TIMEOUT, "after {when}:\n{}", expected.difference(&found));
        }
        assert!(begun.elapsed() < STEP_TIMEOUT, "after {when}: it never comes to rest");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A restart with nothing to do writes nothing.
async fn quiet_restart(side: &mut Side) {
    let before = side.revisions().await;
    side.restart();
    let begun = Instant::now();
    while !side.settled().await {
        assert!(begun.elapsed() < STEP_TIMEOUT, "it never comes to rest");
    }
    assert_eq!(side.revisions().await, before, "revisions of the control plane and of the members");
}
