//! The JSON of problems.

use std::hint::black_box;

use actix_web::ResponseError as _;
use criterion::Criterion;
use http_kit::{FieldError, Problem};
use values::Invalid;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let not_found = Problem::not_found("task");
    criterion.bench_function("a problem", |bencher| {
        bencher.iter(|| black_box(&not_found).error_response());
    });
    let error = || {
        FieldError::new(
            "email",
            Invalid::new("invalid-email", "Must be an e-mail address."),
        )
    };
    let invalid = Problem::validation(vec![error(), error(), error()]);
    criterion.bench_function("a problem with three invalid fields", |bencher| {
        bencher.iter(|| black_box(&invalid).error_response());
    });
    criterion.final_summary();
}
