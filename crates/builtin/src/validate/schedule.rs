//! Parses a CronJob's schedule for validation. Must not know when it fires.

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// One of the five fields: its bounds and the names of its values.
struct Bounds {
    lowest: u32,
    highest: u32,
    names: &'static [&'static str],
}

const FIELDS: [Bounds; 5] = [
    Bounds { lowest: 0, highest: 59, names: &[] },
    Bounds { lowest: 0, highest: 23, names: &[] },
    Bounds { lowest: 1, highest: 31, names: &[] },
    Bounds { lowest: 1, highest: 12, names: &MONTHS },
    Bounds { lowest: 0, highest: 6, names: &DAYS },
];

/// Reads a schedule of five fields, or one of the `@` words.
pub(super) fn check(text: &str) -> Result<(), String> {
    if let Some(word) = text.strip_prefix('@') {
        return check_word(text, word);
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let found = fields.len();
        return Err(format!("expected exactly 5 fields, found {found}: [{}]", fields.join(" ")));
    }
    for (field, bounds) in fields.iter().zip(&FIELDS) {
        for range in field.split(',').filter(|range| !range.is_empty()) {
            check_range(range, bounds)?;
        }
    }
    Ok(())
}

fn check_word(text: &str, word: &str) -> Result<(), String> {
    match word {
        "yearly" | "annually" | "monthly" | "weekly" | "daily" | "midnight" | "hourly" => Ok(()),
        _ => match word.strip_prefix("every ") {
            Some(duration) if is_duration(duration) => Ok(()),
            Some(_) => Err(format!("failed to parse duration {text}: invalid duration")),
            None => Err(format!("unrecognized descriptor: {text}")),
        },
    }
}

fn is_duration(text: &str) -> bool {
    let is_unit = |unit: char| matches!(unit, 'h' | 'm' | 's');
    text.starts_with(|first: char| first.is_ascii_digit())
        && text.ends_with(is_unit)
        && text.chars().all(|letter| letter.is_ascii_digit() || letter == '.' || is_unit(letter))
}

fn check_range(text: &str, bounds: &Bounds) -> Result<(), String> {
    let parts: Vec<&str> = text.split('/').collect();
    let (range, step) = match parts[..] {
        [range] => (range, None),
        [range, step] => (range, Some(step)),
        _ => return Err(format!("too many slashes: {text}")),
    };
    let edges: Vec<&str> = range.split('-').collect();
    let (from, to) = match edges[..] {
        ["*" | "?"] => (bounds.lowest, bounds.highest),
        [single] => {
            let from = value(single, bounds.names)?;
            (from, if step.is_some() { bounds.highest } else { from })
        }
        [from, to] => (value(from, bounds.names)?, value(to, bounds.names)?),
        _ => return Err(format!("too many hyphens: {text}")),
    };
    if step.map(|step| value(step, &[])).transpose()? == Some(0) {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    let (lowest, highest) = (bounds.lowest, bounds.highest);
    match () {
        () if from < lowest => Err(format!("beginning of range ({from}) below minimum ({lowest}): {text}")),
        () if to > highest => Err(format!("end of range ({to}) above maximum ({highest}): {text}")),
        () if from > to => Err(format!("beginning of range ({from}) beyond end of range ({to}): {text}")),
        () => Ok(()),
    }
}

fn value(text: &str, names: &[&str]) -> Result<u32, String> {
    let lower = text.to_lowercase();
    if let Some(index) = names.iter().position(|name| *name == lower) {
        let first = u32::from(names.len() == MONTHS.len());
        return Ok(first + u32::try_from(index).unwrap_or_default());
    }
    match text.parse::<i64>() {
        Ok(number) if number < 0 => Err(format!("negative number ({number}) not allowed: {text}")),
        Ok(number) => Ok(u32::try_from(number).unwrap_or(u32::MAX)),
        Err(_) => {
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read() {
        for (text, message) in [
            ("* * * * *", ""),
            ("*/5 0-6,12 1 jan-mar mon", ""),
            ("@hourly", ""),
            ("@every 1h30m", ""),
            ("0 0 1 1 ?", ""),
            ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
            ("61 * * * *", "end of range (61) above maximum (59): 61"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("@never", "unrecognized descriptor: @never"),
        ] {
            assert_eq!(check(text).err().unwrap_or_default(), message, "{text}");
        }
    }
}
