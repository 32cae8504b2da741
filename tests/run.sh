#!/usr/bin/env bash
# Every test on the embedded broker, then those that use a broker again on Apache Kafka.
# REQUIRE_KAFKA=1 makes it a failure when Apache Kafka cannot run here.
set -uo pipefail
cd "$(dirname "$0")/.."
bin=${BIN:-.venv/bin}
said=()
failed=0

run() { # run NAME PYTEST-ARGUMENTS...
  local name=$1
  shift
  echo "== $name"
  # Most tests wait for brokers and workers most of the time: several go on at once, each process with a broker of its own.
  if "$bin/pytest" -q --numprocesses "${PROCESSES:-3}" --dist loadfile "$@"; then
    said+=("$name: passed")
  else
    said+=("$name: FAILED")
    failed=1
  fi
}

run "all tests, embedded broker" --broker embedded
if why=$(bash infra/kafka/kafka.sh resolve 2>&1); then
  run "broker tests, Apache Kafka $(bash infra/kafka/kafka.sh version)" --broker kafka -m "broker or kafka"
elif [ -n "${REQUIRE_KAFKA:-}" ]; then
  said+=("Apache Kafka: FAILED to start: $why")
  failed=1
else
  said+=("Apache Kafka: left out: $why")
fi
printf '\n'
printf '%s\n' "${said[@]}"
exit "$failed"
