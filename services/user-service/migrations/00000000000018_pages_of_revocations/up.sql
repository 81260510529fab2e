-- A page of changes reads its own rows only, also if one transaction raised the epochs of very many users.
DROP INDEX users_by_epoch_transaction;
CREATE INDEX users_by_epoch_transaction ON users (epoch_transaction, id) WHERE epoch_transaction IS NOT NULL;
