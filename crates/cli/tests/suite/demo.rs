//! `longshore demo`: every story goes as it says, fits a terminal and leaves nothing behind.

use std::process::{Command, Output, Stdio};

use expect_test::expect_file;

const STORIES: [&str; 5] = ["lazy", "preemption", "suspension", "batch", "static"];

fn demo(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longshore"));
    command.arg("demo").args(arguments).stdin(Stdio::null()).output().expect("it starts")
}

fn said(arguments: &[&str]) -> String {
    let output = demo(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("it prints text")
}

#[test]
fn every_story_goes_as_it_says() {
    for story in STORIES {
        let text = said(&[story]);
        assert!(text.contains("$ kubectl ") && text.contains("nothing is left behind"), "{text}");
        assert!(!text.contains('\u{1b}'), "colour in a pipe: {text}");
        let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{story} is too wide: {wide:#?}");
    }
}

#[test]
fn the_lazy_story() {
    expect_file!["demo/lazy.txt"].assert_eq(&said(&["lazy"]));
}

#[test]
fn a_pause_asks_for_enter_and_ends_at_the_end_of_input() {
    let output = demo(&["lazy", "--pause"]);
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), said(&["lazy"]));
    assert_eq!(String::from_utf8_lossy(&output.stderr).matches("[Enter]").count(), 5);
}

#[test]
fn without_a_name_the_stories_are_listed() {
    let text = said(&[]);
    for story in STORIES {
        assert!(text.lines().any(|line| line.starts_with(&format!("  {story} "))), "{story} in {text}");
    }
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    let output = demo(&["lasy"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(errors.contains("\"lasy\"") && errors.contains(&STORIES.join(", ")), "{errors}");
}
