DROP TRIGGER set_creator_of_mail ON task_mails;
DROP FUNCTION set_creator_of_mail();
ALTER TABLE task_mails DROP COLUMN creator;
