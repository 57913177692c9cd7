#!/usr/bin/env bash
# A worker that needs only bash 5, curl and jq, and runs one task at a time. The program gets the text of the task as stdin, and
# what it prints is the result; if it fails, so does the task.
#
#   ROTA_URL=http://127.0.0.1:7682 ROTA_KEY=rota_… examples/workers/worker.sh shout tr a-z A-Z
set -um # Each background job is a process group of its own, which a cancel ends as a whole.
agent=${1:?usage: worker.sh AGENT PROGRAM [ARGUMENTS]}
shift
: "${ROTA_URL:=http://127.0.0.1:7682}" "${ROTA_KEY:=}"
dir=$(mktemp -d)
# Not by a trap of EXIT: a background process that a signal ends before it is a program of its own would run it, too.
quit() {
  rm -rf "$dir"
  exit "$1"
}
poll='' stopping='' failures=0
# SIGINT: of a background process that SIGTERM ends, bash prints a line.
trap 'stopping=1; [ -z "$poll" ] || kill -INT "$poll" 2>/dev/null' TERM INT

uuid() { cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen; }

# request METHOD PATH SECONDS [interruptible]: sends the JSON in $dir/body. Sets $status (000: no answer); the answer is
# $dir/answer. SIGTERM ends one that is interruptible.
request() {
  curl -s -X "$1" "$ROTA_URL/v1/$2" --max-time "$3" -o "$dir/answer" -D "$dir/headers" -w '%{http_code}' \
    -H "authorization: Bearer $ROTA_KEY" -H 'content-type: application/json' -H 'expect:' \
    --data-binary "@$dir/body" >"$dir/status" &
  local sent=$!
  [ "${4:-}" != interruptible ] || poll=$sent
  while kill -0 "$sent" 2>/dev/null; do
    if [ -z "$stopping" ] || [ -z "$poll" ]; then
      wait "$sent" # A signal ends a wait, too.
    else
      kill -INT "$sent" 2>/dev/null
      sleep 0.1
    fi
  done
  poll=''
  status=$(cat "$dir/status")
}

# Pauses as the server asks, or longer after each failure. Gives up if a repetition would not help.
later() {
  case $status in
    000 | 408 | 429 | 5??) ;;
    404) register ;;
    *)
      echo "the server refuses this worker: $status $(cat "$dir/answer")" >&2
      quit 1
      ;;
  esac
  # It still has an outcome to send: a rest would end at once, and the requests would follow each other without a pause.
  [ -z "$stopping" ] || sleep 1
  local asked
  asked=$(tr -d '\r' <"$dir/headers" | awk -F': *' 'tolower($1) == "retry-after" { print $2 }')
  failures=$((failures < 5 ? failures + 1 : 5))
  rest "${asked:-$(awk "BEGIN { print 0.1 * 2 ^ $failures * (1 + $RANDOM / 32768) }")}"
}

rest() {
  [ -z "$stopping" ] || return 0
  sleep "$1" &
  poll=$!
  wait "$poll"
  poll=''
}

instance=$(uuid)
register() {
  while :; do
    jq -n --arg agent "$agent" --arg id "$instance" --arg name "$(hostname)" \
      '{name: $name, instanceId: $id, agents: [$agent], slots: 1, runtime: "bash"}' >"$dir/body"
    request POST workers 30
    [ "$status" != 201 ] || break
    [ "$status" != 404 ] || status=400
    # One that was never registered holds no task, and has nothing to unregister.
    [ -z "$stopping" ] || [ -n "${worker:-}" ] || quit 0
    later
  done
  worker=$(jq -r .workerId "$dir/answer")
  echo "worker $worker waits for tasks of $agent" >&2
  beat=$(jq -r '.heartbeatMs / 1000' "$dir/answer")
  # With five seconds for the answer, a claim ends within a lease even if its answer never comes, and is repeated.
  wait_s=$(jq -r '[.maxWaitS, ([.leaseMs / 1250 - 5, 1] | max | floor)] | min' "$dir/answer")
}

# Runs the program for the attempt in $dir/attempt, and sends heartbeats meanwhile. Sets $code; `cancelled`: Rota has ended it.
run() {
  jq -r '.task | .message // .instruction // (.payload | tojson)' "$dir/attempt" >"$dir/in"
  "$@" <"$dir/in" >"$dir/out" 2>"$dir/err" &
  local program=$! cancelled=''
  while kill -0 "$program" 2>/dev/null; do
    sleep "$beat" &
    local timer=$!
    wait -n "$program" "$timer" 2>/dev/null
    { kill "$timer" && wait "$timer"; } 2>/dev/null
    kill -0 "$program" 2>/dev/null || break
    jq '{attempts: [{attemptToken}]}' "$dir/attempt" >"$dir/body"
    request POST "workers/$worker/heartbeat" 5
    case $status in
      200)
        [ "$(jq -r '.drain // false' "$dir/answer")" = false ] || stopping=1
        if [ "$(jq '.attempts[0] | .ok and (has("cancel") | not)' "$dir/answer")" = false ]; then
          cancelled=1
          kill -- "-$program" 2>/dev/null
        fi
        ;;
      404) register ;;
    esac
  done
  wait "$program"
  code=$?
  [ -z "$cancelled" ] || code=cancelled
}

# Sends the outcome until the server has answered.
finish() {
  local token body
  token=$(jq -r .attemptToken "$dir/attempt")
  if [ "$code" = 0 ]; then
    body='{attempts: [{attemptToken: $token, outcome: "done", result: ($out | rtrimstr("\n"))}]}'
  else
    body='{attempts: [{attemptToken: $token, outcome: "failed", error: "exit code \($code): \($err | .[-1000:])"}]}'
  fi
  while :; do
    jq -n --arg token "$token" --arg code "$code" --rawfile out "$dir/out" --rawfile err "$dir/err" "$body" >"$dir/body"
    request POST "workers/$worker/finish" 30
    case $status in
      200) break ;;
      400 | 413) body='{attempts: [{attemptToken: $token, outcome: "failed", error: "the result was refused", retryable: false}]}' ;;
      404) register ;;
      *) later ;;
    esac
  done
}

register
claim=$(uuid)
while [ -z "$stopping" ]; do
  jq -n --arg id "$claim" --argjson wait "$wait_s" '{claimId: $id, max: 1, waitS: $wait}' >"$dir/body"
  request POST "workers/$worker/claim" $((wait_s + 5)) interruptible
  if [ "$status" != 200 ]; then
    [ -z "$stopping" ] || break
    later # With the same claimId: the server may have assigned a task in a response that was lost.
    continue
  fi
  failures=0
  claim=$(uuid)
  retry=$(jq -r '(.retryInMs // 0) / 1000' "$dir/answer")
  # With retryInMs it is the server that drains: another one takes over.
  [ "$(jq '.drain == true and .retryInMs == null' "$dir/answer")" = false ] || stopping=1
  if [ "$(jq '.attempts | length' "$dir/answer")" -gt 0 ]; then
    jq '.attempts[0]' "$dir/answer" >"$dir/attempt"
    run "$@"
    [ "$code" = cancelled ] || finish
  elif [ "$retry" != 0 ]; then
    rest "$retry"
  fi
done
echo '{}' >"$dir/body"
request DELETE "workers/$worker" 10
quit 0
