CREATE INDEX CONCURRENTLY IF NOT EXISTS former_emails_by_email_key ON former_emails (email_key);
