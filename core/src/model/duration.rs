//! Durations: read as Go writes them (`1h30m`, `100ms`), written as protobuf's JSON has them.

use std::fmt::Write as _;
use std::time::Duration;

/// Longest duration that is taken: a million hours, which the API's schema stays within, too.
const MAX: Duration = Duration::from_hours(1_000_000);

/// Reads Go's duration syntax, refusing negative values.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || {
        format!(
            "`{text}` is not a duration; write a number with a unit, for example 100ms, 5s or 1h30m"
        )
    };
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    if unsigned.starts_with('-') {
        return Err(format!(
            "`{text}` is negative; use a duration of zero or more"
        ));
    }
    if unsigned == "0" {
        return Ok(Duration::ZERO);
    }
    if unsigned.is_empty() {
        return Err(wrong());
    }
    let mut rest = unsigned;
    let mut nanos: u128 = 0;
    while !rest.is_empty() {
        let number_end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(wrong)?;
        let (number, tail) = rest.split_at(number_end);
        let unit_end = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let unit: u128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return Err(wrong()),
        };
        nanos = scaled(number, unit)
            .and_then(|part| nanos.checked_add(part))
            .ok_or_else(wrong)?;
        rest = tail;
    }
    let duration = u64::try_from(nanos / 1_000_000_000)
        .ok()
        .zip(u32::try_from(nanos % 1_000_000_000).ok())
        .map(|(seconds, nanos)| Duration::new(seconds, nanos))
        .ok_or_else(wrong)?;
    if duration > MAX {
        return Err(wrong());
    }
    Ok(duration)
}

/// `number` (digits with at most one point) times `unit`, in whole nanoseconds.
fn scaled(number: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let digits = |text: &str| {
        if text.is_empty() {
            Some(0)
        } else {
            text.parse::<u128>().ok()
        }
    };
    // More digits than a nanosecond can show are cut off, as Go does.
    let fraction = &fraction[..fraction.len().min(18)];
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    digits(whole)?
        .checked_mul(unit)?
        .checked_add(digits(fraction)?.checked_mul(unit)? / scale)
}

/// Seconds with 0, 3, 6 or 9 decimals and an `s`.
pub fn print(duration: Duration) -> String {
    let mut text = duration.as_secs().to_string();
    let nanos = duration.subsec_nanos();
    let written = if nanos == 0 {
        Ok(())
    } else if nanos.is_multiple_of(1_000_000) {
        write!(text, ".{:03}", nanos / 1_000_000)
    } else if nanos.is_multiple_of(1_000) {
        write!(text, ".{:06}", nanos / 1_000)
    } else {
        write!(text, ".{nanos:09}")
    };
    written.expect("writing to a String does not fail");
    text.push('s');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_syntax_is_read_and_protobuf_syntax_written() {
        for (text, printed) in [
            ("100ms", "0.100s"),
            ("1h30m", "5400s"),
            ("5s", "5s"),
            ("0.25s", "0.250s"),
            ("5ms", "0.005s"),
            ("0", "0s"),
            ("0s", "0s"),
            ("2s3ns", "2.000000003s"),
            ("1.5us", "0.000001500s"),
            (".5s", "0.500s"),
            ("+1m", "60s"),
        ] {
            assert_eq!(parse(text).map(print).as_deref(), Ok(printed), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_an_example() {
        for text in [
            "",
            "5",
            "s",
            "1 s",
            "-1s",
            "1.2.3s",
            "1d",
            "9999999999999999h",
            ".",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
