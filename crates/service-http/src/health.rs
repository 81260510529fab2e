use std::future::ready;

use database::Database;
use http_kit::Health;
use messaging::Publisher;

/// Readiness checks of a service: it is ready when the database can be used and its publishers are
/// connected. A service whose publishers are not connected still accepts requests; workers publish later
/// what it could not.
#[must_use]
pub fn health<'a>(
    database: &Database,
    publishers: impl IntoIterator<Item = &'a Publisher>,
) -> Health {
    let database = database.clone();
    let publishers: Vec<_> = publishers.into_iter().cloned().collect();
    Health::default()
        .required("database", move || {
            let database = database.clone();
            async move { database.is_usable().await }
        })
        .required("queue", move || {
            ready(publishers.iter().all(Publisher::is_connected))
        })
}
