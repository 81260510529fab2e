use std::time::Duration;

app_config::settings! {
    /// How many callers may wait for the end of a task, and how long.
    #[derive(Copy)]
    pub struct WaitingSettings {
        /// Callers that wait for the end of a task (`?wait=`). When there are more, a client address with few displaces the
        /// newest caller of the address with the most, which is answered at once.
        pub max: usize = in_range(
            "GATEWAY_MAX_WAITING",
            "12000",
            "a whole number from 1 to 1000000",
            |max| (1..=1_000_000).contains(max)
        ),
        /// The longest time for which a caller waits for the end of a task, whatever it asks for: less than the time after
        /// which a proxy in front of the gateway gives up.
        pub longest: Duration = in_range(
            "GATEWAY_LONGEST_WAIT",
            "50s",
            "a duration from 1s to 50s",
            |wait| (Duration::from_secs(1)..=Duration::from_secs(50)).contains(wait)
        ),
    }
}
