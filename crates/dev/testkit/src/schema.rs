//! Compares what a service's code says about its tables with its migrated database.

use std::collections::{BTreeMap, BTreeSet};

use crate::{TestDatabase, lines};

/// The diesel type of each column, by `table.column`.
type Columns = BTreeMap<String, String>;

/// Fails unless the text of a `schema.rs` has exactly the tables and columns of a database schema, with
/// their types. `omitted` lists tables and columns (`table.column`) that it may lack, each with a reason.
pub fn assert_schema_matches(
    database: &TestDatabase,
    schema: &str,
    source: &str,
    omitted: &[(&str, &str)],
) {
    let (declared, actual) = (parse(source), load(database, schema));
    let differences = differences(&declared, &actual, omitted);
    assert!(
        differences.is_empty(),
        "schema.rs differs from the schema {schema}: {differences:#?}"
    );
}

/// Fails unless the `CHECK` constraints of a column (`table.column`) allow exactly these texts.
pub fn assert_allowed_texts<'text>(
    database: &TestDatabase,
    schema: &str,
    column: &str,
    expected: impl IntoIterator<Item = &'text str>,
) {
    let expected: BTreeSet<String> = expected.into_iter().map(str::to_owned).collect();
    let (table, name) = column.split_once('.').expect("a name like table.column");
    let constraints = lines(
        &mut database.admin(),
        &format!(
            "SELECT pg_get_constraintdef(c.oid) AS line FROM pg_constraint c
            JOIN pg_attribute a ON a.attrelid = c.conrelid AND c.conkey = ARRAY[a.attnum]
            WHERE c.contype = 'c' AND c.conrelid = '{schema}.{table}'::regclass AND a.attname = '{name}'"
        ),
    );
    let allowed: BTreeSet<String> = constraints.iter().flat_map(|one| literals(one)).collect();
    assert_eq!(allowed, expected, "{column}");
}

fn literals(definition: &str) -> Vec<String> {
    let quoted = definition.split('\'').skip(1).step_by(2);
    quoted.map(str::to_owned).collect()
}

fn differences(declared: &Columns, actual: &Columns, omitted: &[(&str, &str)]) -> Vec<String> {
    let mut differences = Vec::new();
    let mut used = BTreeSet::new();
    for (column, kind) in actual {
        let table = column.split('.').next().unwrap_or_default();
        match declared.get(column) {
            Some(declared) if declared == kind => {}
            Some(declared) => differences.push(format!("{column} is {kind}, not {declared}")),
            None => {
                let is_it = |(name, _): &&(&str, &str)| name == column || *name == table;
                match omitted.iter().find(is_it) {
                    Some((name, _)) => drop(used.insert(*name)),
                    None => differences.push(format!("{column} ({kind}) is missing")),
                }
            }
        }
    }
    let unknown = declared.keys();
    let unknown = unknown.filter(|column| !actual.contains_key(*column));
    differences.extend(unknown.map(|column| format!("{column} is not in the database")));
    let unused = omitted.iter().filter(|(name, _)| !used.contains(name));
    differences.extend(unused.map(|(name, _)| format!("{name} is not omitted")));
    differences
}

/// Reads the `table!` blocks of a `schema.rs`.
fn parse(source: &str) -> Columns {
    let mut columns = Columns::new();
    let (mut table, mut renamed) = (None, None);
    for line in source.lines().map(str::trim) {
        if line.starts_with("//") {
            continue;
        }
        if let Some(name) = line.strip_prefix("#[sql_name = \"") {
            renamed = name.split('"').next();
        } else if let (true, Some((name, _))) = (line.ends_with('{'), line.split_once(" (")) {
            table = Some(name);
        } else if line == "}" {
            table = None;
        } else if let (Some(table), Some((column, kind))) = (table, line.split_once(" -> ")) {
            columns.insert(
                format!("{table}.{}", renamed.take().unwrap_or(column)),
                kind.trim_end_matches(',').to_owned(),
            );
        }
    }
    columns
}

/// Reads the tables of a schema, except partitions and the one that diesel keeps for itself.
fn load(database: &TestDatabase, schema: &str) -> Columns {
    let columns = lines(
        &mut database.admin(),
        &format!(
            "SELECT format('%s.%s %s %s', table_name, column_name, udt_name, is_nullable) AS line
            FROM information_schema.columns
            JOIN information_schema.tables USING (table_schema, table_name)
            WHERE table_schema = '{schema}' AND table_type = 'BASE TABLE' AND table_name <> '__diesel_schema_migrations'
                AND NOT (SELECT relispartition FROM pg_class
                    WHERE oid = format('%I.%I', table_schema, table_name)::regclass)"
        ),
    );
    let parsed = columns.iter().map(|line| {
        let mut words = line.split(' ').map(str::to_owned);
        let mut next = || words.next().unwrap();
        let (name, kind) = (next(), diesel_type(&next()));
        let kind = match next().as_str() {
            "YES" => format!("Nullable<{kind}>"),
            _ => kind,
        };
        (name, kind)
    });
    parsed.collect()
}

/// The diesel type of a Postgres type; an array's name begins with an underscore.
fn diesel_type(name: &str) -> String {
    if let Some(element) = name.strip_prefix('_') {
        return format!("Array<{}>", diesel_type(element));
    }
    match name {
        "bool" => "Bool",
        "bytea" => "Binary",
        "inet" => "Inet",
        "int2" => "SmallInt",
        "int4" => "Integer",
        "int8" => "BigInt",
        "jsonb" => "Jsonb",
        "text" => "Text",
        "timestamptz" => "Timestamptz",
        other => other,
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "
        diesel::table! {
            tasks (id) {
                id -> Binary,
                // A comment -> not a column.
                tags -> Array<Text>,
            }
        }
        diesel::table! {
            steps (task_id, number) {
                number -> Nullable<Integer>,
            }
        }
        diesel::joinable!(steps -> tasks (task_id));
    ";

    fn columns(all: &[(&str, &str)]) -> Columns {
        let all = all.iter();
        all.map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned()))
            .collect()
    }

    fn actual() -> Columns {
        columns(&[
            ("steps.number", "Nullable<Integer>"),
            ("tasks.id", "Binary"),
            ("tasks.tags", "Array<Text>"),
        ])
    }

    #[test]
    fn tables_and_columns_are_read() {
        assert_eq!(parse(SOURCE), actual());
    }

    #[test]
    fn equal_schemas_have_no_differences() {
        assert!(differences(&parse(SOURCE), &actual(), &[]).is_empty());
    }

    #[test]
    fn every_kind_of_difference_is_found() {
        let actual = columns(&[
            ("audit_log.number", "BigInt"),
            ("tasks.id", "Text"),
            ("tasks.parked", "Bool"),
            ("tasks.tags", "Array<Text>"),
        ]);
        assert_eq!(
            differences(&parse(SOURCE), &actual, &[]),
            [
                "audit_log.number (BigInt) is missing",
                "tasks.id is Text, not Binary",
                "tasks.parked (Bool) is missing",
                "steps.number is not in the database",
            ]
        );
    }

    #[test]
    fn a_table_or_column_may_be_omitted_if_it_exists() {
        let mut actual = actual();
        actual.extend(columns(&[("log.at", "Text"), ("tasks.parked", "Bool")]));
        let omitted = [("log", "a reason"), ("tasks.parked", "a reason")];
        assert!(differences(&parse(SOURCE), &actual, &omitted).is_empty());
        let omitted = [omitted[0], omitted[1], ("tasks.id", "a reason")];
        assert_eq!(
            differences(&parse(SOURCE), &actual, &omitted),
            ["tasks.id is not omitted"]
        );
    }

    #[test]
    fn text_literals_of_a_constraint_are_read() {
        let definition = "CHECK ((status = ANY (ARRAY['pending'::text, 'sent'::text])))";
        assert_eq!(literals(definition), ["pending", "sent"]);
    }
}
