DROP INDEX users_by_epoch_transaction;
CREATE INDEX users_by_epoch_transaction ON users (epoch_transaction) WHERE epoch_transaction IS NOT NULL;
