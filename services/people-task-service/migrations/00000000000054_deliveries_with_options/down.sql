DROP TRIGGER hide_delivery_from_earlier_workers ON deliveries;
DROP TRIGGER hide_new_delivery_from_earlier_workers ON deliveries;
DROP FUNCTION hide_delivery_from_earlier_workers();
UPDATE deliveries SET lost_claims = option_claims WHERE lost_claims IS NULL;
ALTER TABLE deliveries ALTER COLUMN lost_claims SET NOT NULL, DROP COLUMN option_claims, DROP COLUMN has_options;
