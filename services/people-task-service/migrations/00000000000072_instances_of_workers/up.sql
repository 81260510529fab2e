-- A number is given a second time after a dump was restored, with which the sequence goes back. The instance says whose row
-- it is. Workers of earlier versions do not know it.
-- squawk-ignore adding-field-with-default -- there are few rows, and each needs its own
ALTER TABLE delivery_workers ADD COLUMN instance text NOT NULL DEFAULT gen_random_uuid()::text;
