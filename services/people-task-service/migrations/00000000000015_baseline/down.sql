DROP VIEW all_deliveries;
DROP TABLE audit_log, erased_users, finished_deliveries, deliveries, delivery_workers, webhooks, task_states, tasks;
DROP FUNCTION create_audit_log_partition, create_audit_log_partitions, drop_audit_log_partition, revoke_all_on,
    prune_audit_log, forget_audit_addresses, pseudonymise_audit_log, record_erased_user, may_add_rows, erasure_lock,
    create_finished_deliveries_partition, create_finished_deliveries_partitions, drop_finished_deliveries_partition,
    delete_rows_of_tasks, delete_deliveries_of_webhooks, new_id;
