//! Durations on the command line.

use std::time::Duration;

use anyhow::{Context, ensure};

/// Parses `90s` or `5m`.
pub fn parse_duration(text: &str) -> anyhow::Result<Duration> {
    let (number, unit) = match (text.strip_suffix('s'), text.strip_suffix('m')) {
        (Some(number), _) => (number, 1),
        (_, Some(number)) => (number, 60),
        _ => anyhow::bail!("expected a duration such as 90s or 5m"),
    };
    let number: u64 = number
        .parse()
        .with_context(|| format!("{number} is not a number"))?;
    let seconds = number.saturating_mul(unit);
    ensure!(
        (15..=24 * 3600).contains(&seconds),
        "expected a duration between 15s and 24 hours"
    );
    Ok(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_seconds_and_minutes() {
        assert_eq!(parse_duration("90s").unwrap(), Duration::from_secs(90));
        assert_eq!(parse_duration("5m").unwrap(), Duration::from_secs(300));
    }

    #[test]
    fn refuses_other_units_and_durations_out_of_range() {
        for wrong in ["5", "xs", "1s", "100000m", ""] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
