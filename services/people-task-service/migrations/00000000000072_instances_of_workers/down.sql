ALTER TABLE delivery_workers DROP COLUMN instance;
