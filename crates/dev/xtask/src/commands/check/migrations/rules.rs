//! The rules for one migration: those of the linter squawk, which reads SQL as Postgres does, and some of our own.
//!
//! A comment in the line before a statement makes an exception to a rule of squawk, and must say why:
//! `-- squawk-ignore ban-drop-column -- no version since 0.3.0 reads it`.

use std::{collections::BTreeSet, fmt};

use squawk_linter::{Linter, Rule};
use squawk_syntax::{
    Parse, SourceFile, SyntaxKind, SyntaxNode,
    ast::{self, AstNode as _},
};

/// Rules of squawk that are off unless they are named.
const ADDITIONAL: [Rule; 4] = [
    Rule::BanDropTrigger,
    Rule::BanDisableTrigger,
    Rule::BanRevoke,
    Rule::BanDetachInheritance,
];

/// What runs the migrations sets these limits: see `database::migrate`.
const SET_BY_THE_RUNNER: [Rule; 2] = [Rule::RequireLockTimeout, Rule::RequireStatementTimeout];

/// How a migration runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runs {
    InTransaction,
    OutsideTransaction,
}

/// A rule that a line breaks.
#[derive(Debug)]
pub(super) struct Finding {
    line: usize,
    rule: String,
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.line, self.rule, self.message)
    }
}

/// Returns the rules that a migration breaks.
pub(super) fn check(sql: &str, runs: Runs) -> Vec<Finding> {
    let parsed = SourceFile::parse(sql);
    let mut checker = Checker {
        sql,
        found: Vec::new(),
    };
    for error in parsed.errors() {
        checker.report(error.range().start().into(), "syntax", error.message());
    }
    checker.check_comments(&parsed);
    checker.lint(&parsed, runs);
    match runs {
        Runs::InTransaction => checker.check_transaction(&parsed),
        Runs::OutsideTransaction => checker.check_single_statement(&parsed),
    }
    checker.check_new_columns(&parsed.syntax_node());
    checker.found.sort_by_key(|found| found.line);
    checker.found
}

struct Checker<'sql> {
    sql: &'sql str,
    found: Vec<Finding>,
}

impl Checker<'_> {
    fn report(&mut self, offset: usize, rule: &str, message: &str) {
        let before = self.sql.get(..offset).unwrap_or_default();
        self.found.push(Finding {
            line: before.matches('\n').count() + 1,
            rule: rule.to_owned(),
            message: message.to_owned(),
        });
    }

    fn report_node(&mut self, node: &SyntaxNode, rule: &str, message: &str) {
        self.report(start(node), rule, message);
    }

    fn lint(&mut self, parsed: &Parse<SourceFile>, runs: Runs) {
        let mut linter = Linter::with_rules(&ADDITIONAL, &SET_BY_THE_RUNNER);
        linter.settings.assume_in_transaction = runs == Runs::InTransaction;
        for violation in linter.lint(parsed, self.sql) {
            let help = violation.help.unwrap_or_default();
            let message = format!("{} {help}", violation.message);
            let rule = violation.code.to_string();
            self.report(violation.text_range.start().into(), &rule, message.trim());
        }
    }

    /// An exception names its rules and a reason, and holds for one statement.
    fn check_comments(&mut self, parsed: &Parse<SourceFile>) {
        let tokens = parsed.syntax_node();
        let tokens = tokens.descendants_with_tokens();
        let comments = tokens.filter(|token| token.kind() == SyntaxKind::COMMENT);
        for comment in comments.collect::<Vec<_>>() {
            let text = comment.to_string();
            let directive = text.trim_start_matches(['-', '/', '*', ' ']);
            if directive.starts_with("squawk-") && !is_exception(directive) {
                self.report(
                    comment.text_range().start().into(),
                    "exception",
                    "an exception is `-- squawk-ignore RULE -- REASON`",
                );
            }
        }
    }

    /// Rules for the statements of a transaction, which keeps all its locks to its end.
    fn check_transaction(&mut self, parsed: &Parse<SourceFile>) {
        let root = parsed.syntax_node();
        for token in root.descendants_with_tokens() {
            if token.kind() == SyntaxKind::CONCURRENTLY_KW {
                self.report(
                    token.text_range().start().into(),
                    "concurrently-in-transaction",
                    "CONCURRENTLY needs a migration of its own, with `run_in_transaction = false` in its metadata.toml",
                );
            }
        }
        let created = created_tables(parsed);
        for statement in parsed.tree().stmts() {
            let changed = match &statement {
                ast::Stmt::Update(update) => update.relation_name().map(|name| text(name.syntax())),
                ast::Stmt::Delete(delete) => delete.relation_name().map(|name| text(name.syntax())),
                ast::Stmt::Merge(_)
                | ast::Stmt::Truncate(_)
                | ast::Stmt::Lock(_)
                | ast::Stmt::Cluster(_) => None,
                _ => continue,
            };
            if !changed.is_some_and(|table| created.contains(&table)) {
                self.report_node(
                    statement.syntax(),
                    "locks-rows",
                    "requests wait for these rows until the migration ends: let the processes change them in small batches",
                );
            }
        }
    }

    /// Postgres runs several statements that are sent at once in a transaction, and one that is repeated after a crash
    /// must not fail.
    fn check_single_statement(&mut self, parsed: &Parse<SourceFile>) {
        let statements: Vec<ast::Stmt> = parsed.tree().stmts().collect();
        let is_repeatable = match statements.as_slice() {
            [ast::Stmt::CreateIndex(index)] => {
                index.concurrently_token().is_some() && index.if_not_exists().is_some()
            }
            [ast::Stmt::DropIndex(index)] => {
                index.concurrently_token().is_some() && index.if_exists().is_some()
            }
            // A partitioned table cannot have an index built concurrently, so a block builds it in steps that it commits.
            [ast::Stmt::Do(_)] => parsed.syntax_node().text().to_string().contains("COMMIT;"),
            _ => false,
        };
        if !is_repeatable {
            self.report(
                0,
                "outside-transaction",
                "expected one statement: CREATE INDEX CONCURRENTLY IF NOT EXISTS or DROP INDEX CONCURRENTLY IF EXISTS, or a DO block that commits each of its steps",
            );
        }
    }

    /// A constraint of a new column is checked for each existing row, which squawk does not know.
    fn check_new_columns(&mut self, root: &SyntaxNode) {
        for column in root.descendants().filter_map(ast::AddColumn::cast) {
            let mut constraints = column.constraints();
            if constraints.any(|it| matches!(it, ast::Constraint::CheckConstraint(_))) {
                self.report_node(
                    column.syntax(),
                    "checked-column",
                    "add the CHECK constraint with NOT VALID after the column, and validate it in the next migration",
                );
            }
        }
    }
}

/// `directive` is a comment from `squawk-` on.
fn is_exception(directive: &str) -> bool {
    let exception = directive.strip_prefix("squawk-ignore ");
    let parts = exception.and_then(|text| text.split_once("--"));
    parts.is_some_and(|(rules, reason)| !rules.trim().is_empty() && !reason.trim().is_empty())
}

fn created_tables(parsed: &Parse<SourceFile>) -> BTreeSet<String> {
    let statements = parsed.tree().stmts();
    let created = statements.filter_map(|statement| match statement {
        ast::Stmt::CreateTable(table) => table.table_name().map(|name| text(name.syntax())),
        _ => None,
    });
    created.collect()
}

fn text(node: &SyntaxNode) -> String {
    node.text().to_string().trim().to_lowercase()
}

/// Where a node begins after the comments before it.
fn start(node: &SyntaxNode) -> usize {
    let children = node.children_with_tokens();
    let mut significant = children.filter(|child| !child.kind().is_trivia());
    let first = significant.next().map(|child| child.text_range());
    first.unwrap_or_else(|| node.text_range()).start().into()
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
