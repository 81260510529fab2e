DROP TRIGGER users_end_codes ON users;
DROP FUNCTION end_codes_of_user();
