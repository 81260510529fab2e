//! Calls to addresses that callers chose: guarded against server-side request forgery
