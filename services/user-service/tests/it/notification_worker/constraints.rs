//! The enums and the constraints of their columns name the same values.

use std::collections::BTreeSet;

use diesel::sql_types::Text;
use diesel::{QueryableByName, RunQueryDsl as _, sql_query};
use testkit::TestDatabase;
use user_service::MIGRATIONS;
use user_service::notifications::{Channel, Kind};

#[derive(QueryableByName)]
struct Constraint {
    #[diesel(sql_type = Text)]
    definition: String,
}

/// The values that a check constraint of the form `column IN (…)` allows.
fn allowed_values(database: &TestDatabase, constraint: &str) -> BTreeSet<String> {
    let found: Constraint = sql_query(
        "SELECT pg_get_constraintdef(oid) AS definition FROM pg_constraint
         WHERE conname = $1 AND connamespace = 'users'::regnamespace",
    )
    .bind::<Text, _>(constraint)
    .get_result(&mut database.admin())
    .unwrap();
    let quoted = found.definition.split('\'').skip(1).step_by(2);
    quoted.map(str::to_owned).collect()
}

#[test]
fn kinds_and_channels_are_those_of_the_constraints() {
    let database = TestDatabase::users(MIGRATIONS);
    let kinds = BTreeSet::from(Kind::ALL.map(|kind| kind.name().to_owned()));
    let channels = BTreeSet::from(Channel::ALL.map(|channel| channel.name().to_owned()));
    for (constraint, expected) in [
        ("notifications_kind_check", &kinds),
        ("codes_purpose_check", &kinds),
        ("notifications_channel_check", &channels),
    ] {
        assert_eq!(
            &allowed_values(&database, constraint),
            expected,
            "{constraint}"
        );
    }
}
