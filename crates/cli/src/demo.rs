//! `longshore demo`: plays a story of a proposal step by step on a control plane with three clusters inside this
//! process, and prints what a user would type and what came of it. Stories are scenarios, so they are tested.

use std::fmt::Write as _;
use std::io::{BufRead as _, Write as _};

use anyhow::{Context as _, Result, anyhow};
use scenario::{Failure, PlayedStep, Scenario, StoryAction, Subject};

use crate::Hint;
use crate::demo::changes::{Mark, changes};
use crate::terminal_text::{Paint, wrapped};

mod changes;
mod commands;

/// The stories by name, in the order for a new user.
const STORIES: [(&str, &str); 5] = [
    ("lazy", include_str!("../stories/lazy.yaml")),
    ("preemption", include_str!("../stories/preemption.yaml")),
    ("suspension", include_str!("../stories/suspension.yaml")),
    ("batch", include_str!("../stories/batch.yaml")),
    ("static", include_str!("../stories/static.yaml")),
];

/// What a story begins with.
const INTRODUCTION: &str = "This process runs a control plane with the clusters member1, member2 and member3. The \
                       demo sends each command to its API and reads the changes back. If a result differs \
                       from the story, the demo ends with an error.";

/// Arguments of `longshore demo`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Story to play [default: list all stories]
    #[arg(value_name = "STORY")]
    story: Option<String>,
    /// Wait for the Enter key after each step
    #[arg(long, requires = "story")]
    pause: bool,
}

/// Lists the stories, or plays one.
pub fn run(arguments: &Arguments) -> Result<()> {
    let Some(name) = arguments.story.as_deref() else { return print(&listed()?) };
    let Some((_, text)) = STORIES.iter().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = STORIES.iter().map(|(name, _)| *name).collect();
        let hint = Hint(format!("there are {}", names.join(", ")));
        return Err(anyhow::Error::new(hint).context(format!("find the story {name:?}")));
    };
    let story = read(name, text)?;
    let paint = Paint::of_stdout();
    print(&opening(&story, paint))?;
    let mut number = 0;
    let mut printed = Ok(());
    let played = scenario::play_story(&story, |played| {
        let text = render_step(played, &mut number, paint);
        if printed.is_ok() && !text.is_empty() {
            printed = print(&text).and_then(|()| pause(arguments.pause));
        }
    });
    played.map_err(|failure| failed(name, &failure))?;
    printed?;
    print(&closing(&story, name))
}

fn read(name: &str, text: &str) -> Result<Scenario> {
    Scenario::parse(format!("{name}.yaml").as_ref(), text).context("read the story")
}

fn listed() -> Result<String> {
    let mut text =
        "Stories, each played on a control plane with three clusters in this process:\n\n".to_owned();
    for (name, story) in STORIES {
        let title = read(name, story)?.title;
        let _ = writeln!(text, "{}", wrapped(&format!("  {name:<12}"), &format!("{title}.")));
    }
    let _ = writeln!(text, "\nTo play one: longshore demo {} --pause", STORIES[0].0);
    Ok(text)
}

fn opening(story: &Scenario, paint: Paint) -> String {
    let mut text = format!("{}\n\n", paint.strong(&wrapped("", &format!("{}.", story.title))));
    let _ = writeln!(text, "{}", wrapped("", INTRODUCTION));
    if let Some(gates) = gates(story) {
        let _ = writeln!(text, "Feature gates: {gates}.");
    }
    let _ = writeln!(
        text,
        "  {}   {}   {}",
        Mark::New.shown(paint),
        Mark::Changed.shown(paint),
        Mark::Gone.shown(paint)
    );
    text
}

fn closing(story: &Scenario, name: &str) -> String {
    let gates = gates(story).map(|gates| format!(" --feature-gates {gates}")).unwrap_or_default();
    let after = STORIES.iter().skip_while(|(known, _)| *known != name).nth(1);
    let next = after.map(|(next, _)| format!("The next story:  longshore demo {next}\n")).unwrap_or_default();
    format!(
        "\nThat is the end of the story; nothing is left behind.\nTo try it yourself:  longshore \
         up{gates}\n{next}"
    )
}

fn gates(story: &Scenario) -> Option<String> {
    let gates: Vec<String> = story.gates.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!gates.is_empty()).then(|| gates.join(","))
}

/// What there is to say about a step; nothing if it only looked whether all is as it should be.
fn render_step(played: &PlayedStep<'_>, number: &mut usize, paint: Paint) -> String {
    if let StoryAction::Look(events) = &played.action {
        let lines = events.iter().map(|(_, event)| format!("{}\n", wrapped("    event: ", event)));
        return lines.collect();
    }
    *number += 1;
    let mut text = format!("\n{}\n\n", wrapped(&format!("{number}. "), played.said.unwrap_or_default()));
    for command in commands::shown(played) {
        let _ = writeln!(text, "{}", paint.strong(&command));
    }
    for line in &played.messages {
        let _ = writeln!(text, "{}", wrapped("", line));
    }
    text.push('\n');
    let fared: Vec<String> = played.subjects.iter().filter_map(|subject| fared(subject, paint)).collect();
    match fared.is_empty() {
        true => text + "  Nothing runs yet.\n",
        false => text + &fared.concat(),
    }
}

/// What became of one subject of the story.
fn fared(subject: &Subject<'_>, paint: Paint) -> Option<String> {
    let name = subject.reference.to_string();
    if subject.before.is_none() && subject.now.is_none() {
        return None;
    }
    let changes = changes(subject);
    if changes.iter().all(|change| change.mark == Mark::Same) {
        return Some(format!("  {name}: as before\n"));
    }
    let mut text = format!("  {name}\n");
    for change in changes {
        let label = format!("  {} {:<11}", change.mark.sign(), change.label);
        let _ = writeln!(text, "{}", change.mark.painted(paint, &wrapped(&label, &change.text)));
    }
    Some(text)
}

/// Waits for Enter, if that is wanted; does not wait at the end of the input.
fn pause(wanted: bool) -> Result<()> {
    if wanted {
        std::io::stderr().write_all(b"\n[Enter] ").context("prompt for the Enter key")?;
        std::io::stdin().lock().read_line(&mut String::new()).context("read the Enter key")?;
    }
    Ok(())
}

fn failed(name: &str, failure: &Failure) -> anyhow::Error {
    let whys = failure.whys.iter().map(|why| format!("why: {why}"));
    let lines: Vec<String> = failure.problems.iter().cloned().chain(whys).collect();
    anyhow!("{}", lines.join("; "))
        .context(format!("step {} ({})", failure.step, failure.title))
        .context(format!("play the story {name}"))
}

fn print(text: &str) -> Result<()> {
    std::io::stdout().write_all(text.as_bytes()).context("print")
}
