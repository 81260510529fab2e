-- Counts the users of each segment again, which triggers do otherwise.
TRUNCATE users.user_segments;
INSERT INTO users.user_segments (id, is_active, plan, scope, vendor, users)
SELECT segment, is_active, plan, scope, vendor, count(*) FROM users.users GROUP BY 1, 2, 3, 4, 5;
