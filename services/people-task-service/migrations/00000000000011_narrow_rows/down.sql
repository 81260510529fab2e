DO $$ BEGIN RAISE 'the former tables are gone: restore a backup of before this migration'; END $$;
