-- Users who were deactivated before changes were noted lose their webhooks, too. The time is earlier than that of every
-- later change of the same user.
INSERT INTO user_changes (user_id, changed)
SELECT id, clock_timestamp() FROM users WHERE NOT is_active
ON CONFLICT (user_id) DO NOTHING;
