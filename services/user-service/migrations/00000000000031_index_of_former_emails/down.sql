DROP INDEX CONCURRENTLY IF EXISTS former_emails_by_email_key;
