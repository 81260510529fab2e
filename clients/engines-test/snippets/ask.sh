api() { curl --silent --show-error --fail --max-time 70 --retry 20 --retry-all-errors --header "Authorization: Bearer $COUNTERSIGN_KEY" "$@"; }

task=$(api "$COUNTERSIGN_URL/people-task/tasks" --header 'Content-Type: application/json' \
  --header "Idempotency-Key: $(cat /proc/sys/kernel/random/uuid)" \
  --data "{\"title\": \"Ship order 4711?\", \"requester\": \"$COUNTERSIGN_REQUESTER\", \"approver\": \"grace@example.com\"}")
id=$(jq --raw-output .id <<<"$task")
status=pending
while [ "$status" = pending ]; do
  task=$(api "$COUNTERSIGN_URL/people-task/tasks/$id?wait=50&include=comment") && status=$(jq --raw-output .status <<<"$task")
done
echo "$status: $(jq --raw-output .comment <<<"$task")"
[ "$status" = approved ]
