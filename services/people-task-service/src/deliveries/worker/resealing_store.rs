//! The statements of [`resealing`](super::resealing), in raw SQL because their index serves ranges only.

use database::{Error, prepared};
use diesel::sql_types::{Array, BigInt, Binary, Text};
use diesel::{PgConnection, Queryable, RunQueryDsl as _};
use values::WebhookId;

/// A webhook with headers.
#[derive(Queryable)]
pub(super) struct SealedRow {
    pub(super) id: WebhookId,
    pub(super) options: String,
    header_key: String,
}

/// Loads webhooks whose headers one of these keys sealed.
pub(super) fn load_sealed_by(
    connection: &mut PgConnection,
    keys: &[String],
    limit: i64,
) -> Result<Vec<SealedRow>, Error> {
    let load = prepared(
        "SELECT id, options, header_key FROM webhooks WHERE header_key = ANY($1) AND options IS NOT NULL LIMIT $2",
    );
    let load = load.bind::<Array<Text>, _>(keys).bind::<BigInt, _>(limit);
    Ok(load.returning::<(Binary, Text, Text)>().load(connection)?)
}

/// Replaces the options of a webhook, unless another worker has done so.
pub(super) fn replace(
    connection: &mut PgConnection,
    row: &SealedRow,
    options: &str,
    key: &str,
) -> Result<bool, Error> {
    let replace = prepared(
        "UPDATE webhooks SET options = $3, header_key = $4 WHERE id = $1 AND header_key = $2",
    );
    let replaced = replace
        .bind::<Binary, _>(row.id)
        .bind::<Text, _>(&row.header_key)
        .bind::<Text, _>(options)
        .bind::<Text, _>(key)
        .execute(connection)?;
    Ok(replaced > 0)
}

/// How many webhooks have headers that another key sealed, counted up to 10,000 before and after it.
pub(super) fn count_of_others(connection: &mut PgConnection, key: &str) -> Result<i64, Error> {
    let count = prepared(
        "SELECT (SELECT count(*) FROM (SELECT FROM webhooks WHERE header_key < $1 LIMIT 10000) AS before)
            + (SELECT count(*) FROM (SELECT FROM webhooks WHERE header_key > $1 LIMIT 10000) AS after)",
    );
    let count = count.bind::<Text, _>(key).returning::<BigInt>();
    Ok(count.get_result(connection)?)
}
