//! Formats durations and ages as kubectl does. Must not know whose age it is.

use jiff::Timestamp;
use serde_json::Value;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// A duration in two units at most: `45s`, `5m30s`, `3h12m`, `2d5h`, `400d`, `3y12d`.
pub fn human_duration(seconds: i64) -> String {
    match seconds {
        // Clocks of clients and servers differ a little: nearly now is now.
        ..-1 => String::from("<invalid>"),
        -1..0 => String::from("0s"),
        0..120 => format!("{seconds}s"),
        120..600 => two_units(seconds, MINUTE, "m", 1, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two_units(seconds, HOUR, "h", MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two_units(seconds, DAY, "d", HOUR, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two_units(seconds, YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

fn two_units(seconds: i64, large: i64, large_name: &str, small: i64, small_name: &str) -> String {
    let (whole, rest) = (seconds / large, seconds % large / small);
    match rest {
        0 => format!("{whole}{large_name}"),
        _ => format!("{whole}{large_name}{rest}{small_name}"),
    }
}

/// How long ago a timestamp in JSON was; `<unknown>` where there is none.
pub(super) fn since(timestamp: &Value, now: Timestamp) -> String {
    match read(timestamp) {
        Some(then) => human_duration(now.duration_since(then).as_secs()),
        None => String::from("<unknown>"),
    }
}

/// A timestamp in JSON.
pub(super) fn read(timestamp: &Value) -> Option<Timestamp> {
    timestamp.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_in_kubectl() {
        for (seconds, text) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (599, "9m59s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (11_700, "3h15m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (180_000, "2d2h"),
            (691_200, "8d"),
            (63_071_999, "729d"),
            (63_072_000, "2y"),
            (64_000_000, "2y10d"),
            (252_288_000, "8y"),
        ] {
            assert_eq!(human_duration(seconds), text, "{seconds} seconds");
        }
    }

    #[test]
    fn a_missing_time_is_unknown() {
        let now = "2026-01-01T00:00:10Z".parse().unwrap();
        assert_eq!(since(&Value::Null, now), "<unknown>");
        assert_eq!(since(&Value::from("2026-01-01T00:00:00Z"), now), "10s");
        assert_eq!(since(&Value::from("2026-01-01T00:00:00.000001Z"), now), "9s");
    }
}
