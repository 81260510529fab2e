use std::time::Duration;

use app_config::{Reader, Settings};

/// When the circuit of a service opens, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct CircuitSettings {
    /// Consecutive requests without a response that open it.
    pub failures: u32,
    /// How long it stays open before it lets a trial request through.
    pub pause: Duration,
}

impl Settings for CircuitSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        Ok(Self {
            failures: reader.in_range(
                "GATEWAY_CIRCUIT_FAILURES",
                "5",
                "a whole number from 1 to 1000000",
                "Consecutive requests without a response that open the circuit of a service; while it is open, its routes respond with `503` at once.",
                |failures| (1..=1_000_000).contains(failures),
            )?,
            pause: reader.in_range(
                "GATEWAY_CIRCUIT_PAUSE",
                "1s",
                "a duration from 100ms to 5m",
                "How long a circuit stays open before it lets a trial request through.",
                |pause| (Duration::from_millis(100)..=Duration::from_secs(300)).contains(pause),
            )?,
        })
    }
}
