//! How fields of log lines are written: one event is one line, whatever is in it. Names, paths and messages of others
//! may contain line breaks and control characters, which terminals obey and readers of logs take for lines of ours.

use std::fmt;

use tracing::field::Field;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

/// Fields as `name=value`, with control characters escaped.
pub fn escaped() -> impl for<'writer> FormatFields<'writer> + Send + Sync + 'static {
    debug_fn(write_field).delimited(" ")
}

fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    if field.name() != "message" {
        write!(writer, "{}=", field.name())?;
    }
    for character in format!("{value:?}").chars() {
        match character.is_control() {
            true => write!(writer, "{}", character.escape_default())?,
            false => writer.write_char(character)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no one panics while holding it").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_event_is_one_line_without_control_characters() {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .fmt_fields(escaped())
            .finish();
        let hostile = "eve\nERROR all is lost\r\u{1b}[2J\u{9b}31m\u{7f}";
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(user = %hostile, path = hostile, debug = ?hostile, "refused {hostile}");
        });
        let text = String::from_utf8(written.0.lock().expect("no one panics while holding it").clone());
        let text = text.expect("text");
        assert_eq!(text.matches('\n').count(), 1, "{text:?}");
        assert!(text.trim_end().chars().all(|character| !character.is_control()), "{text:?}");
        assert!(text.contains("refused eve\\nERROR all is lost\\r\\u{1b}[2J"), "{text:?}");
        assert!(text.contains("user=eve\\nERROR"), "{text:?}");
    }
}
