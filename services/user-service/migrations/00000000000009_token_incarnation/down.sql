DROP INDEX users_by_epoch_raised;
DROP TRIGGER users_note_deleted ON users;
DROP FUNCTION note_deleted_users;
DROP TABLE deleted_users;
DROP TABLE token_lifetimes;
DROP FUNCTION database_incarnation;
DROP TABLE token_generation;
