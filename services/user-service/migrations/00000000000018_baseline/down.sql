DROP TABLE audit_log, deletion_settings, deletion_steps, deletions, notifications, code_requests, codes, sign_in_refusals,
    known_networks, sign_in_failures, last_sign_ins, token_lifetimes, token_generation, deleted_users, user_segments,
    former_emails, sign_in_names, users;
DROP FUNCTION create_audit_log_partition, create_audit_log_partitions, drop_audit_log_partition, revoke_all_on,
    prune_audit_log, forget_audit_addresses, pseudonymise_audit_log, note_deletion_in_progress,
    refuse_change_during_deletion, insert_last_sign_in, move_last_sign_in, database_incarnation, note_deleted_users,
    note_raised_epoch, count_in_segments, claim_sign_in_names, user_segment;
