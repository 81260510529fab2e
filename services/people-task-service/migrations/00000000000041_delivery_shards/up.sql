-- Webhook-workers own hosts by shards: a host belongs to the shard that a hash of its name gives. Only the owner of a
-- shard sends deliveries to its hosts. A shard without an owner, or with one that has no row in `delivery_workers`, is
-- taken by any worker. Numbers of workers are never used twice, so the owner is also the fencing token.
CREATE TABLE delivery_shards (
    id integer PRIMARY KEY,
    worker_id integer
) WITH (fillfactor = 50);

INSERT INTO delivery_shards (id) SELECT generate_series(0, 63);
