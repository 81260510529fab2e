-- A worker of an earlier version would send the task itself to a webhook with options. Those workers take only deliveries
-- of which `lost_claims < 2` or `lost_claims >= 2` is true. So `lost_claims` of a delivery with options is NULL, and
-- `option_claims` has its value. Processes of an earlier version may insert and update such deliveries: triggers see to it.

-- The function below runs with this search path.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

ALTER TABLE deliveries
    -- Whether the webhook has options; NULL for deliveries of earlier versions, which have none.
    ADD COLUMN has_options boolean,
    -- What `lost_claims` is for other deliveries.
    -- squawk-ignore prefer-bigint-over-int -- of the type of lost_claims
    ADD COLUMN option_claims integer NOT NULL DEFAULT 0,
    -- squawk-ignore ban-drop-not-null -- processes of earlier versions read it in conditions only
    ALTER COLUMN lost_claims DROP NOT NULL;

CREATE FUNCTION hide_delivery_from_earlier_workers() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.has_options IS NULL THEN
        NEW.has_options = coalesce((SELECT options IS NOT NULL FROM webhooks WHERE id = NEW.webhook_id), false);
    END IF;
    IF NEW.has_options THEN
        NEW.option_claims = coalesce(NEW.lost_claims, NEW.option_claims);
        NEW.lost_claims = NULL;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER hide_new_delivery_from_earlier_workers BEFORE INSERT ON deliveries
    FOR EACH ROW WHEN (NEW.has_options IS DISTINCT FROM false) EXECUTE FUNCTION hide_delivery_from_earlier_workers();
CREATE TRIGGER hide_delivery_from_earlier_workers BEFORE UPDATE ON deliveries
    FOR EACH ROW WHEN (NEW.has_options AND NEW.lost_claims IS NOT NULL)
    EXECUTE FUNCTION hide_delivery_from_earlier_workers();
