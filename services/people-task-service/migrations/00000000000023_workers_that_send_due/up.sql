-- Whether a worker knows deliveries of due dates. While one runs that does not, none is added.
ALTER TABLE delivery_workers ADD COLUMN sends_due boolean NOT NULL DEFAULT false;
