//! Logging: one line per event on stderr, as text or as JSON. Control characters in values are escaped, so that a user
//! who chooses a name cannot forge a log line or move the cursor of a terminal (log injection).

use std::fmt::{self, Debug, Write as _};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// The crates that are ours: libraries below them say more than an operator wants to know.
const OURS: [&str; 8] =
    ["longshore", "controllers", "apiserver", "member", "plane", "store", "supervise", "scenario"];

/// How a line looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// One line of text per event, for people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Level {
    /// A failure that the process does not recover from by itself.
    Error,
    /// A condition that an operator should check.
    Warn,
    /// Changes of state that an operator wants to know.
    Info,
    /// Details that help to find a fault.
    Debug,
    /// Everything.
    Trace,
}

/// Options of commands that run for long.
#[derive(Debug, Clone, clap::Args)]
pub struct LogFlags {
    /// Format of the log lines on stderr
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: Format,
    /// Log level; the environment variable LONGSHORE_LOG sets it per module, as in `warn,controllers=debug`
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: Level,
}

impl LogFlags {
    /// How lines look.
    pub fn format(&self) -> Format {
        self.log_format
    }

    /// What is logged: ours at this level, libraries only when they warn.
    pub fn filter(&self) -> String {
        let level = format!("{:?}", self.log_level).to_lowercase();
        let libraries = if self.log_level == Level::Error { "error" } else { "warn" };
        let ours = OURS.map(|name| format!("{name}={level}"));
        format!("{libraries},{}", ours.join(","))
    }
}

/// Begins to log by this filter, unless the environment has another one. Panics are logged like everything else, also
/// those that are caught.
pub fn start(filter: &str, format: Format) {
    let filter = EnvFilter::try_from_env("LONGSHORE_LOG").unwrap_or_else(|_| filter.into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .event_format(Lines(format))
        .init();
}

/// Lets panics be log lines.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
        let backtrace = std::backtrace::Backtrace::capture();
        tracing::error!(panic = text, place, thread, %backtrace, "panic");
    }));
}

/// Writes events as lines.
struct Lines(Format);

/// Everything that an event says, by name.
#[derive(Default)]
struct Said(Map<String, Value>);

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut said = Said::default();
        event.record(&mut said);
        let message = said.0.remove("message").unwrap_or_default();
        let message = message.as_str().unwrap_or_default().to_owned();
        let spans: Vec<String> = context
            .event_scope()
            .into_iter()
            .flat_map(|scope| scope.from_root())
            .map(|span| {
                let fields = span.extensions();
                let fields = fields.get::<FormattedFields<N>>().map(|fields| fields.as_str().to_owned());
                format!("{}{{{}}}", span.name(), fields.unwrap_or_default())
            })
            .collect();
        let line = Line {
            time: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
            level: event.metadata().level().as_str(),
            target: event.metadata().target(),
            spans,
            message,
            fields: said.0,
        };
        writeln!(writer, "{}", if self.0 == Format::Json { line.json() } else { line.text() })
    }
}

/// One event.
struct Line<'l> {
    time: String,
    level: &'l str,
    target: &'l str,
    spans: Vec<String>,
    message: String,
    fields: Map<String, Value>,
}

impl Line<'_> {
    fn text(&self) -> String {
        let mut text = format!("{} {:>5} {}: ", self.time, self.level, self.target);
        for span in &self.spans {
            let _ = write!(text, "{}: ", escaped(span));
        }
        text += &escaped(&self.message);
        for (name, value) in &self.fields {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let _ = write!(text, " {name}={}", escaped(&value));
        }
        text
    }

    fn json(&self) -> String {
        let mut line = Map::new();
        line.insert("time".to_owned(), self.time.clone().into());
        line.insert("level".to_owned(), self.level.into());
        line.insert("target".to_owned(), self.target.into());
        if !self.spans.is_empty() {
            line.insert("spans".to_owned(), self.spans.clone().into());
        }
        line.insert("message".to_owned(), self.message.clone().into());
        // An event's own field must not replace one of these.
        for (name, value) in &self.fields {
            line.entry(name.clone()).or_insert_with(|| value.clone());
        }
        // JSON escapes all control characters but these, which some terminals obey.
        Value::Object(line)
            .to_string()
            .chars()
            .map(|one| if one.is_control() { '\u{fffd}' } else { one })
            .collect()
    }
}

/// A text in which nothing ends the line or moves the cursor.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for one in text.chars() {
        match one.is_control() || is_bidirectional(one) {
            true => escaped.extend(one.escape_default()),
            false => escaped.push(one),
        }
    }
    escaped
}

/// Characters that change the order in which others are shown.
fn is_bidirectional(one: char) -> bool {
    matches!(one, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(message: &str, fields: &[(&str, &str)]) -> Line<'static> {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value)));
        Line {
            time: "2026-01-01T00:00:00.000000Z".to_owned(),
            level: "WARN",
            target: "controllers",
            spans: vec!["member{name=\"a\\nb\"}".to_owned()],
            message: message.to_owned(),
            fields: fields.collect(),
        }
    }

    #[test]
    fn nobody_can_forge_a_line_or_move_the_cursor() {
        let hostile = "x\n2026-01-01T00:00:01Z ERROR forged: \u{1b}[2J\r\u{9b}\u{202e}\u{7f}";
        let line = line(hostile, &[("name", hostile)]);
        for text in [line.text(), line.json()] {
            assert!(!text.chars().any(char::is_control), "{text:?}");
        }
        assert!(
            line.text().contains("name=x\\n2026-01-01T00:00:01Z ERROR forged: \\u{1b}[2J\\r"),
            "{}",
            line.text()
        );
        let read: Value = serde_json::from_str(&line.json()).expect("one JSON object");
        assert_eq!((read["level"].as_str(), read["target"].as_str()), (Some("WARN"), Some("controllers")));
    }

    #[test]
    fn a_field_cannot_replace_what_a_line_says_of_itself() {
        let read: Value =
            serde_json::from_str(&line("m", &[("level", "INFO"), ("error", "e")]).json()).expect("JSON");
        assert_eq!((read["level"].as_str(), read["error"].as_str()), (Some("WARN"), Some("e")));
    }
}
