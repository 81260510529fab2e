DROP FUNCTION record_erased_user;
DROP FUNCTION may_add_rows;
DROP FUNCTION erasure_lock;
DROP TABLE erased_users;
