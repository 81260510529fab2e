use super::*;

/// The rules that a migration breaks.
fn broken(sql: &str, runs: Runs) -> Vec<String> {
    check(sql, runs)
        .into_iter()
        .map(|found| found.rule)
        .collect()
}

/// Statements, and a rule that each breaks.
const BAD: &[(&str, &str)] = &[
    (
        "CREATE INDEX i ON t (a)",
        "require-concurrent-index-creation",
    ),
    ("DROP INDEX i", "require-concurrent-index-deletion"),
    (
        "CREATE INDEX CONCURRENTLY i ON t (a)",
        "concurrently-in-transaction",
    ),
    ("DROP INDEX CONCURRENTLY i", "concurrently-in-transaction"),
    (
        "ALTER TABLE t ADD COLUMN a uuid DEFAULT gen_random_uuid()",
        "adding-field-with-default",
    ),
    (
        "ALTER TABLE t ADD COLUMN a bigint GENERATED ALWAYS AS (b) STORED",
        "adding-field-with-default",
    ),
    (
        "ALTER TABLE t ADD COLUMN a text NOT NULL",
        "adding-required-field",
    ),
    (
        "ALTER TABLE t ADD COLUMN a bigint CHECK (a > 0)",
        "checked-column",
    ),
    (
        "ALTER TABLE t ADD COLUMN a bytea REFERENCES users",
        "adding-foreign-key-constraint",
    ),
    (
        "ALTER TABLE t ALTER COLUMN a SET NOT NULL",
        "adding-not-nullable-field",
    ),
    (
        "ALTER TABLE t ALTER COLUMN a TYPE bigint",
        "changing-column-type",
    ),
    ("ALTER TABLE t RENAME COLUMN a TO b", "renaming-column"),
    ("ALTER TABLE t RENAME TO u", "renaming-table"),
    ("ALTER TABLE t DROP COLUMN a", "ban-drop-column"),
    ("DROP TABLE t", "ban-drop-table"),
    ("DROP FUNCTION f()", "ban-drop-function"),
    ("DROP TRIGGER g ON t", "ban-drop-trigger"),
    (
        "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0)",
        "constraint-missing-not-valid",
    ),
    (
        "ALTER TABLE t ADD CONSTRAINT c UNIQUE (a)",
        "disallowed-unique-constraint",
    ),
    ("UPDATE t SET a = 1", "locks-rows"),
    ("DELETE FROM t WHERE a = 1", "locks-rows"),
    ("TRUNCATE t", "locks-rows"),
    ("LOCK TABLE t", "locks-rows"),
    (
        "BEGIN; ALTER TABLE t ADD COLUMN a text; COMMIT",
        "transaction-nesting",
    ),
    ("ALTER TABLE t ADD COLUMN", "syntax"),
];

#[test]
fn changes_that_lock_or_break_running_processes_are_refused() {
    for (sql, rule) in BAD {
        let broken = broken(&format!("{sql};\n"), Runs::InTransaction);
        assert!(broken.iter().any(|one| one == rule), "{sql}: {broken:?}");
    }
}

#[test]
fn changes_that_add_are_fine() {
    let good = [
        "ALTER TABLE t ADD COLUMN a text;",
        "ALTER TABLE t ADD COLUMN a boolean NOT NULL DEFAULT false;",
        "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0) NOT VALID;",
        "ALTER TABLE t VALIDATE CONSTRAINT c;",
        "CREATE TABLE t (id bigint PRIMARY KEY, a text NOT NULL);\nCREATE INDEX i ON t (a);\nUPDATE t SET a = 'b';",
        "CREATE OR REPLACE FUNCTION f() RETURNS bigint LANGUAGE sql AS $$ SELECT 1; $$;",
    ];
    for sql in good {
        assert!(
            broken(sql, Runs::InTransaction).is_empty(),
            "{sql}: {:?}",
            broken(sql, Runs::InTransaction)
        );
    }
}

#[test]
fn outside_a_transaction_there_is_one_statement_that_can_be_repeated() {
    let good = [
        "-- Why.\nCREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS i ON t (a) WHERE a > 0;",
        "DROP INDEX CONCURRENTLY IF EXISTS i;",
    ];
    for sql in good {
        assert_eq!(broken(sql, Runs::OutsideTransaction), [""; 0], "{sql}");
    }
    let bad = [
        "CREATE INDEX CONCURRENTLY i ON t (a);",
        "CREATE INDEX IF NOT EXISTS i ON t (a);",
        "DROP INDEX CONCURRENTLY i;",
        "DROP INDEX CONCURRENTLY IF EXISTS i; CREATE INDEX CONCURRENTLY IF NOT EXISTS i ON t (a);",
        "ALTER TABLE t ADD COLUMN a text;",
        "",
    ];
    for sql in bad {
        let broken = broken(sql, Runs::OutsideTransaction);
        assert!(
            broken.contains(&"outside-transaction".to_owned()),
            "{sql}: {broken:?}"
        );
    }
}

#[test]
fn an_exception_needs_a_rule_and_a_reason() {
    let drop = "ALTER TABLE t DROP COLUMN a;\n";
    let with = |comment: &str| broken(&format!("{comment}\n{drop}"), Runs::InTransaction);
    assert_eq!(
        with("-- squawk-ignore ban-drop-column -- no version since 0.3.0 reads it"),
        [""; 0]
    );
    assert_eq!(with("-- squawk-ignore ban-drop-column"), ["exception"]);
    assert_eq!(with("-- squawk-ignore ban-drop-column --"), ["exception"]);
    assert_eq!(with("-- squawk-ignore"), ["exception", "ban-drop-column"]);
    assert!(with("-- squawk-ignore-file ban-drop-column -- why").contains(&"exception".to_owned()));
    assert_eq!(
        with("-- squawk-ignore ban-drop-table -- why"),
        ["ban-drop-column"]
    );
}

#[test]
fn a_finding_names_its_line() {
    let found = check("-- Why.\n\nSELECT 1;\nDROP TABLE t;\n", Runs::InTransaction);
    assert_eq!(found.len(), 1);
    assert!(found[0].to_string().starts_with("4: ban-drop-table: "));
}
