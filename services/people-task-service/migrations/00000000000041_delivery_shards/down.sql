DROP TABLE delivery_shards;
