DROP TRIGGER users_insert_last_sign_in ON users;
DROP TRIGGER users_move_last_sign_in ON users;
DROP FUNCTION insert_last_sign_in;
DROP FUNCTION move_last_sign_in;
ALTER TABLE users ADD COLUMN last_sign_in timestamptz;
UPDATE users SET last_sign_in = last_sign_ins.at FROM last_sign_ins WHERE user_id = id;
DROP TABLE last_sign_ins;
CREATE INDEX users_by_last_sign_in ON users (last_sign_in, id) INCLUDE (segment);
CREATE INDEX users_by_last_sign_in_descending ON users (last_sign_in DESC NULLS LAST, id DESC) INCLUDE (segment);
