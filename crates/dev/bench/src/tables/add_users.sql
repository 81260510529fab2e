-- Usernames are addresses. One user in ten has another plan, one in a hundred a vendor or is inactive, and one in a thousand
-- another scope. A third has never signed in. Triggers would add the names one by one, and take most of the time. The columns
-- of each table stand only here.
SET session_replication_role = replica;
INSERT INTO users.users (id, username, email, username_key, email_key, password_hash, is_active, plan, scope,
    vendor, created, mtime, email_confirmed)
SELECT decode(lpad(to_hex(n), 24, '0'), 'hex'), name, name, name, name, '$2b$12$', n % 100 <> 1,
    CASE WHEN n % 10 = 0 THEN 'pro' ELSE 'free' END,
    CASE WHEN n % 1000 = 7 THEN ARRAY['user', 'auditor'] ELSE ARRAY['user'] END,
    CASE WHEN n % 100 = 2 THEN '"acme"'::jsonb END, created, created, created
FROM generate_series(1, {count}) AS n,
    LATERAL (SELECT 'person' || n || '@example.org' AS name,
        now() - interval '1 second' * ({count} - n) AS created) AS names;
INSERT INTO users.sign_in_names (name, user_id)
SELECT email_key, id FROM users.users
WHERE id < decode(rpad('01', 24, '0'), 'hex');
INSERT INTO users.last_sign_ins (user_id, at, segment)
SELECT id, CASE WHEN get_byte(id, 11) % 3 <> 0 THEN created + interval '1 hour' END, segment FROM users.users
WHERE id < decode(rpad('01', 24, '0'), 'hex');
