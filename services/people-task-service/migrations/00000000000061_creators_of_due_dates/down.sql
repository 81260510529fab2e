DROP TRIGGER set_creator_of_due_date ON due_dates;
DROP FUNCTION set_creator_of_due_date();
DROP FUNCTION creator_of_lane(text);
ALTER TABLE due_dates DROP COLUMN creator;
