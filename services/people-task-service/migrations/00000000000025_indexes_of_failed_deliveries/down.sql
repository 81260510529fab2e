-- The indexes of partitions go with those of the table, which the last migration created without them.
DROP INDEX finished_deliveries_failed_by_host;
DROP INDEX finished_deliveries_failed;
CREATE INDEX finished_deliveries_failed ON ONLY finished_deliveries (id) WHERE status = 'fail';
CREATE INDEX finished_deliveries_failed_by_host ON ONLY finished_deliveries (host, id) WHERE status = 'fail';
