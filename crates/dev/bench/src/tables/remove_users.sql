-- Removes the users of add_users.sql, whose identifiers begin with zero. Nothing refers to them, so no row of another table is
-- looked for.
SET session_replication_role = replica;
DELETE FROM users.sign_in_names WHERE user_id < decode(rpad('01', 24, '0'), 'hex');
DELETE FROM users.last_sign_ins WHERE user_id < decode(rpad('01', 24, '0'), 'hex');
DELETE FROM users.users WHERE id < decode(rpad('01', 24, '0'), 'hex');
