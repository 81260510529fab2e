DO $$ BEGIN RAISE 'the former table is gone: restore a backup of before this migration'; END $$;
