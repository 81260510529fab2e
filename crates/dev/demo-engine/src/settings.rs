use std::net::SocketAddr;

use app_config::{Error, Reader};
use server::HttpServerSettings;
use values::Secret;

use crate::Control;

/// The settings of a demo engine.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address to listen on. Port 0 picks a free port.
    pub listen_address: SocketAddr,
    /// The bearer token that erasure calls must carry. `None` allows calls without one.
    pub token: Option<Secret>,
    /// How the engine responds at first.
    pub control: Control,
    /// How the engine serves HTTP.
    pub http: HttpServerSettings,
}

impl app_config::Settings for Settings {
    fn read(reader: &mut Reader) -> Result<Self, Error> {
        Ok(Self {
            listen_address: reader.or_default(
                "LISTEN_ADDRESS",
                "127.0.0.1:8090",
                "The address that the demo engine listens on.",
            )?,
            token: reader.optional(
                "DEMO_ENGINE_TOKEN",
                "The bearer token that the erasure calls must carry.",
            )?,
            control: Control {
                delay: reader.or_default(
                    "DEMO_ENGINE_DELAY",
                    "300ms",
                    "The pause before each erasure call is handled.",
                )?,
                fail: reader.or_default(
                    "DEMO_ENGINE_FAIL",
                    "0",
                    "How many times each erasure call of each user fails first.",
                )?,
                accepted: reader.or_default(
                    "DEMO_ENGINE_ACCEPTED",
                    "0s",
                    "How long each erasure call of each user returns `202` before it is done.",
                )?,
                down: false,
            },
            http: HttpServerSettings::read(reader)?,
        })
    }
}

impl Default for Settings {
    /// For tests: a free port, no token, no delay, no failures.
    fn default() -> Self {
        Self {
            listen_address: SocketAddr::from(([127, 0, 0, 1], 0)),
            token: None,
            control: Control::default(),
            http: HttpServerSettings::default(),
        }
    }
}
