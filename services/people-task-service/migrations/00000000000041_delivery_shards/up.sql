-- Webhook-workers own hosts by shards: a host belongs to the shard that a hash of its name gives. Only the owner of a
-- shard sends deliveries to its hosts. A shard without an owner, or with one that has no row in `delivery_workers`, is
-- taken by any worker. Numbers of workers are never used twice, so the owner is also the fencing token.
CREATE TABLE delivery_shards (
    -- squawk-ignore prefer-bigint-over-int -- there are 64
    id integer PRIMARY KEY,
    -- squawk-ignore prefer-bigint-over-int -- of the type of delivery_workers.id
    worker_id integer
) WITH (fillfactor = 50);

INSERT INTO delivery_shards (id) SELECT generate_series(0, 63);

-- A worker that stops takes no shards, and the others share them without it.
ALTER TABLE delivery_workers ADD COLUMN is_stopping boolean NOT NULL DEFAULT false;
