# Prints the answer. It tries again while the server is unreachable, and not if the server refuses the call.
api() {
  local attempt answer
  for attempt in {1..100}; do
    answer=$(curl --silent --show-error --fail --max-time 70 --retry 20 --header "Authorization: Bearer $COUNTERSIGN_KEY" "$@") && break
    [ $? != 22 ] && [ "$attempt" != 100 ] || return 1
    sleep 5
  done
  printf '%s' "$answer"
}

key=$(uuidgen 2>/dev/null || cat /proc/sys/kernel/random/uuid) || exit 1  # macOS has no /proc, and slim images no uuidgen
task=$(api "$COUNTERSIGN_URL/people-task/tasks" --header 'Content-Type: application/json' \
  --header "Idempotency-Key: $key" \
  --data "{\"title\": \"Ship order 4711?\", \"requester\": \"$COUNTERSIGN_REQUESTER\", \"approver\": \"grace@example.com\"}") || exit 1
id=$(jq --raw-output .id <<<"$task")
status=pending
while [ "$status" = pending ]; do
  sleep 1  # a server that stops or has too many callers answers at once
  task=$(api "$COUNTERSIGN_URL/people-task/tasks/$id?wait=50&include=comment") || exit 1
  status=$(jq --raw-output .status <<<"$task")
done
echo "$status: $(jq --raw-output .comment <<<"$task")"
[ "$status" = approved ]
