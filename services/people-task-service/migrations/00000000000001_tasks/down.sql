DROP TABLE delivery_attempts, deliveries, webhooks, tasks;
