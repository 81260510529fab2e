-- No name server knows them. Their hosts do not fit into the indexes of deliveries, so they kept their tasks from being decided.
DELETE FROM webhooks WHERE octet_length(host) > 253;
