-- Prepares the database that psql is connected to, which must have the encoding UTF8: roles, schemas, rights.
-- Run it as a superuser. It is idempotent:
--
--   psql --set ON_ERROR_STOP=1 --file bootstrap.sql postgres://…/countersign
--
-- It takes four passwords from psql variables (--set users_owner_password=…) or, where a variable is missing, from
-- the environment variable of the same name in capitals. A run with other passwords changes them.
--
-- Each service has two roles: the owner creates tables (migrations), and the service role only reads and writes
-- rows. Neither service's roles can read the other's schema.

\set ON_ERROR_STOP 1

\if :{?users_owner_password} \else \getenv users_owner_password USERS_OWNER_PASSWORD
\endif
\if :{?users_service_password} \else \getenv users_service_password USERS_SERVICE_PASSWORD
\endif
\if :{?people_task_owner_password} \else \getenv people_task_owner_password PEOPLE_TASK_OWNER_PASSWORD
\endif
\if :{?people_task_service_password} \else \getenv people_task_service_password PEOPLE_TASK_SERVICE_PASSWORD
\endif

-- Nothing is changed in a database that cannot keep every text as it is.
DO $$
BEGIN
    IF current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION 'the database % has the encoding % and must have UTF8', current_database(), current_setting('server_encoding')
            USING HINT = 'Create it with CREATE DATABASE name ENCODING ''UTF8'' TEMPLATE template0.';
    END IF;
END $$;

BEGIN;

SET LOCAL client_min_messages = warning;

CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public;

SELECT format('CREATE ROLE %I LOGIN', wanted.name)
FROM (VALUES ('users_owner'), ('users_service'), ('people_task_owner'), ('people_task_service')) AS wanted (name)
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = wanted.name) \gexec

ALTER ROLE users_owner LOGIN PASSWORD :'users_owner_password';
ALTER ROLE users_service LOGIN PASSWORD :'users_service_password';
ALTER ROLE people_task_owner LOGIN PASSWORD :'people_task_owner_password';
ALTER ROLE people_task_service LOGIN PASSWORD :'people_task_service_password';

ALTER ROLE users_owner SET search_path = users, public;
ALTER ROLE users_service SET search_path = users, public;
ALTER ROLE people_task_owner SET search_path = people_task, public;
ALTER ROLE people_task_service SET search_path = people_task, public;

-- Managed databases have an administrator that is not a superuser: it must be a member of a role before it may
-- create a schema that the role owns.
SELECT format('GRANT %I TO CURRENT_USER', owner.name)
FROM (VALUES ('users_owner'), ('people_task_owner')) AS owner (name)
WHERE NOT (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) \gexec

REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO users_owner, users_service, people_task_owner, people_task_service;

CREATE SCHEMA IF NOT EXISTS users AUTHORIZATION users_owner;
CREATE SCHEMA IF NOT EXISTS people_task AUTHORIZATION people_task_owner;

REVOKE ALL ON SCHEMA users, people_task FROM PUBLIC;
GRANT USAGE ON SCHEMA users TO users_service;
GRANT USAGE ON SCHEMA people_task TO people_task_service;

ALTER DEFAULT PRIVILEGES FOR ROLE users_owner IN SCHEMA users
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO users_service;
ALTER DEFAULT PRIVILEGES FOR ROLE users_owner IN SCHEMA users
    GRANT USAGE, SELECT ON SEQUENCES TO users_service;
ALTER DEFAULT PRIVILEGES FOR ROLE users_owner IN SCHEMA users
    GRANT EXECUTE ON FUNCTIONS TO users_service;

ALTER DEFAULT PRIVILEGES FOR ROLE people_task_owner IN SCHEMA people_task
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO people_task_service;
ALTER DEFAULT PRIVILEGES FOR ROLE people_task_owner IN SCHEMA people_task
    GRANT USAGE, SELECT ON SEQUENCES TO people_task_service;
ALTER DEFAULT PRIVILEGES FOR ROLE people_task_owner IN SCHEMA people_task
    GRANT EXECUTE ON FUNCTIONS TO people_task_service;

COMMIT;
