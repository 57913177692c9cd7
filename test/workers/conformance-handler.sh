#!/bin/sh
# Does what docs/worker-conformance.md asks of a handler. The work is one line on stdin.
read -r word first second || true
case $word in
  echo) printf '%s' "$first${second:+ $second}" ;;
  append) echo ran >>"$first" ;;
  sleep)
    sleep "$(awk "BEGIN { print $first / 1000 }")"
    case $second in /*) echo slept >>"$second" ;; esac
    ;;
  fail)
    echo "$first${second:+ $second}" >&2
    exit 1
    ;;
  big) head -c "$first" /dev/zero | tr '\0' x ;;
esac
