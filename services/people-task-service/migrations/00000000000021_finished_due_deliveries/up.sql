-- As in `deliveries`.
ALTER TABLE finished_deliveries ADD COLUMN due_at timestamptz;
