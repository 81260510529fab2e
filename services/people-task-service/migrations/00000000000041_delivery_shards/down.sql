ALTER TABLE delivery_workers DROP COLUMN is_stopping;
DROP TABLE delivery_shards;
