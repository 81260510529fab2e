ALTER TABLE delivery_workers DROP COLUMN sends_due;
