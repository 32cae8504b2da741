#!/usr/bin/env bash
# Runs Apache Kafka from its Maven artifacts, on loopback, without Docker.
# Written for bash 3.2 as well, which is what macOS has.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
jars="$here/jars"
readonly here jars
readonly usage="usage: kafka.sh resolve
       kafka.sh version
       kafka.sh start  --dir DIR [--brokers 1|3] [--port P] [--only N] [--extra FILE]
       kafka.sh stop   --dir DIR [--only N]
       kafka.sh kill   --dir DIR [--only N]     (kill -9, for tests)
       kafka.sh status --dir DIR

Broker N listens on 127.0.0.1:P+N-1; the ports after those belong to the
controllers. DIR keeps the data, and the number of brokers and the port of the
last start. FILE has lines for every broker's server.properties, over those here
(listeners, logins, an authorizer); DIR keeps a copy for the next start.
KAFKA_HEAP_OPTS overrides the heap, JAVA_HOME the java."

# Exit codes, for callers that act on them.
readonly failed=1 wrong_usage=2 port_taken=3 missing=4

die() { # die CODE MESSAGE...
  local code=$1
  shift
  printf 'kafka.sh: %s\n' "$@" >&2
  exit "$code"
}

# --- java and jars ----------------------------------------------------------

find_java() { # sets $java
  java=${JAVA_HOME:+$JAVA_HOME/bin/}java
  command -v "$java" >/dev/null || die $missing \
    "no java at '$java'." "Install Java 17 or newer (e.g. openjdk-17-jre-headless), or set JAVA_HOME."
  local said major
  said=$("$java" -version 2>&1) || die $missing "'$java -version' failed: $said" "Install Java 17 or newer, or set JAVA_HOME."
  major=$(printf '%s\n' "$said" | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
  [ "${major:-0}" -ge 17 ] || die $missing "'$java' is Java ${major:-unknown}, Kafka needs 17 or newer." "Install one, or set JAVA_HOME."
}

resolve() {
  if cmp -s "$here/pom.xml" "$jars/pom.xml"; then
    return
  fi
  command -v mvn >/dev/null || die $missing \
    "no mvn on PATH, and $jars does not hold the jars that pom.xml names." "Install Maven, then run: $here/kafka.sh resolve"
  # Into a directory of our own, then one rename: never a half-filled jars/.
  local fresh="$here/jars.$$" said
  if ! said=$(mvn -q -B -U -f "$here/pom.xml" dependency:copy-dependencies "-DoutputDirectory=$fresh" 2>&1); then
    rm -rf "$fresh"
    die $missing "Maven did not resolve the artifacts of $here/pom.xml. It said:" \
      "$(printf '%s\n' "$said" | grep ERROR | grep -vE 're-run|Re-run|ERROR\] *$|Help 1\] http' | head -n 3)" \
      "Check that Maven reaches a repository (a mirror or proxy goes into ~/.m2/settings.xml)," \
      "or set kafka.version in pom.xml to one that the repository has; then run: $here/kafka.sh resolve"
  fi
  cp "$here/pom.xml" "$fresh/pom.xml"
  rm -rf "$jars"
  mv "$fresh" "$jars"
}

version() {
  sed -n 's:.*<kafka.version>\(.*\)</kafka.version>.*:\1:p' "$here/pom.xml"
}

# --- one broker -------------------------------------------------------------

home() { printf '%s/broker-%s' "$dir" "$1"; }

# The pid of broker N, if it runs. A pid file outlives its process, and the
# number may by now be someone else's, so the command line has to name us.
pid_of() {
  local pid_file pid
  pid_file="$(home "$1")/pid"
  [ -f "$pid_file" ] || return 1
  pid=$(cat "$pid_file")
  ps -ww -p "$pid" -o args= 2>/dev/null | grep -qF -- "-Dtgate.broker=$(home "$1") " || return 1
  printf '%s' "$pid"
}

write_properties() {
  local node=$1 voters="" n
  for n in $(seq 1 "$brokers"); do
    voters="$voters${voters:+,}$n@127.0.0.1:$((port + brokers + n - 1))"
  done
  # Extra lines may hold passwords.
  rm -f "$(home "$node")/server.properties"
  (umask 077 && printed_properties >"$(home "$node")/server.properties")
}

printed_properties() { # of broker $node, whose controllers are $voters
  cat "$here/server.properties"
  if [ "$brokers" -gt 1 ]; then cat "$here/cluster.properties"; fi
  printf '\n# This broker.\n'
  printf 'node.id=%s\n' "$node"
  printf 'controller.quorum.voters=%s\n' "$voters"
  printf 'listeners=PLAINTEXT://127.0.0.1:%s,CONTROLLER://127.0.0.1:%s\n' \
    $((port + node - 1)) $((port + brokers + node - 1))
  printf 'advertised.listeners=PLAINTEXT://127.0.0.1:%s\n' $((port + node - 1))
  printf 'log.dirs=%s/data\n' "$(home "$node")"
  if [ -f "$dir/extra.properties" ]; then
    printf '\n# From --extra: of two lines with one name the later one counts.\n'
    cat "$dir/extra.properties"
  fi
}

run_java() { # run_java HEAP CLASS ARGUMENTS...
  # shellcheck disable=SC2086  # heap options are several words
  exec "$java" $1 "-Dtgate.broker=$(home "$node")" "-Dlog4j2.configurationFile=$here/log4j2.yaml" \
    -Djava.awt.headless=true -cp "$jars/*" "${@:2}"
}

launch() {
  local node=$1 heap=-Xmx512m log
  log="$(home "$node")/server.log"
  if [ "$brokers" -gt 1 ]; then heap=-Xmx384m; fi
  mkdir -p "$(home "$node")"
  write_properties "$node"
  # One log a start, the last one kept: what is in it is about this process.
  if [ -f "$log" ]; then mv "$log" "$log.1"; fi
  if [ ! -f "$(home "$node")/data/meta.properties" ]; then
    (run_java -Xmx128m kafka.tools.StorageTool format -t "$(cat "$dir/cluster.id")" \
      -c "$(home "$node")/server.properties") >"$log" 2>&1 || die $failed "formatting broker $node failed:" "$(cat "$log")"
  fi
  # Job control gives the broker its own process group: Ctrl-C is not for it.
  set -m
  (run_java "${KAFKA_HEAP_OPTS:-$heap}" kafka.Kafka "$(home "$node")/server.properties") >>"$log" 2>&1 </dev/null &
  set +m
  printf '%s\n' $! >"$(home "$node")/pid"
}

await_started() {
  local node=$1 log waited=0
  log="$(home "$node")/server.log"
  until grep -q 'Kafka Server started' "$log"; do
    if ! lives "$(cat "$(home "$node")/pid")"; then
      if grep -q 'Address already in use' "$log"; then
        die $port_taken "a port of broker $node is taken; its ports are in $(home "$node")/server.properties"
      fi
      die $failed "broker $node ended while starting; the end of $log:" "$(tail -n 15 "$log")"
    fi
    waited=$((waited + 1))
    [ "$waited" -lt 600 ] || die $failed "broker $node did not start within two minutes; see $log"
    sleep 0.2
  done
}

# Whether the process is there. By state: one that is ending has no command
# line any more and still its ports, and so has a zombie with threads left (l).
lives() {
  case $(ps -p "$1" -o stat= 2>/dev/null) in
    Z*l*) ;;
    '' | Z*) return 1 ;;
  esac
}

signal_and_wait() { # signal_and_wait SIGNAL PATIENCE_SECONDS NODES...
  local signal=$1 patience=$(($2 * 5)) node pid pids=""
  shift 2
  for node in "$@"; do
    if pid=$(pid_of "$node"); then
      kill "-$signal" "$pid" 2>/dev/null || true
      pids="$pids $pid"
    fi
  done
  for pid in $pids; do
    while lives "$pid"; do
      [ "$patience" -gt 0 ] || return 1
      patience=$((patience - 1))
      sleep 0.2
    done
  done
}

# --- commands ---------------------------------------------------------------

# New ports for brokers that run would leave the ones they listen on unknown.
refuse_to_move() {
  local node
  [ -n "$saved_port" ] && [ "$port" != "$saved_port" ] || return 0
  for node in $(seq 1 "$brokers"); do
    if pid_of "$node" >/dev/null; then
      die $wrong_usage "the brokers of $dir run from port $saved_port on; stop them before they move to $port"
    fi
  done
}

start() {
  refuse_to_move
  find_java
  resolve
  mkdir -p "$dir"
  if [ ! -f "$dir/cluster.id" ]; then
    (node=0 && run_java -Xmx128m kafka.tools.StorageTool random-uuid) 2>/dev/null >"$dir/cluster.id.new"
    mv "$dir/cluster.id.new" "$dir/cluster.id"
  fi
  printf 'saved_brokers=%s\nsaved_port=%s\n' "$brokers" "$port" >"$dir/cluster.conf"
  if [ -n "$extra" ]; then (umask 077 && cat "$extra" >"$dir/extra.properties"); fi
  local node started=""
  for node in $nodes; do
    if pid_of "$node" >/dev/null; then continue; fi
    launch "$node"
    started="$started $node"
  done
  # All of them first: none starts before a majority of controllers answers.
  for node in $started; do
    # In a subshell, so that a broker that fails does not leave the others behind.
    (await_started "$node") || {
      local code=$?
      # shellcheck disable=SC2086
      signal_and_wait KILL 10 $started || true
      exit $code
    }
  done
  status
}

stop() {
  # Together: the last broker of a quorum that is gone waits for it in vain.
  # shellcheck disable=SC2086
  signal_and_wait TERM 30 $nodes || signal_and_wait KILL 10 $nodes ||
    die $failed "a broker of $dir does not end"
}

status() {
  local node pid all_run=0
  for node in $nodes; do
    if pid=$(pid_of "$node"); then
      printf 'broker %s: Apache Kafka %s on 127.0.0.1:%s, pid %s, data in %s\n' \
        "$node" "$(version)" $((port + node - 1)) "$pid" "$(home "$node")/data"
    else
      printf 'broker %s: not running\n' "$node"
      all_run=1
    fi
  done
  return $all_run
}

read_arguments() { # sets $dir $brokers $port $nodes $extra, and $saved_port
  dir="" brokers="" port="" extra=""
  local only="" saved_brokers
  while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || die $wrong_usage "$1 needs a value" "$usage"
    case $1 in
      --dir) dir=$2 ;;
      --brokers) brokers=$2 ;;
      --port) port=$2 ;;
      --only) only=$2 ;;
      --extra) extra=$2 ;;
      *) die $wrong_usage "unknown option $1" "$usage" ;;
    esac
    shift 2
  done
  [ -n "$dir" ] || die $wrong_usage "--dir is needed" "$usage"
  case $dir in /*) ;; *) dir="$PWD/$dir" ;; esac
  # Kafka reads log.dirs as a comma-separated list of Java property text.
  case $dir in *[,\\]*) die $wrong_usage "--dir must not contain a comma or a backslash: $dir" ;; esac
  [ -z "$extra" ] || [ -r "$extra" ] || die $wrong_usage "--extra $extra cannot be read"
  saved_brokers="" saved_port=""
  # shellcheck disable=SC1091
  if [ -f "$dir/cluster.conf" ]; then . "$dir/cluster.conf"; fi
  brokers=${brokers:-${saved_brokers:-1}}
  port=${port:-${saved_port:-9092}}
  case $brokers in 1 | 3) ;; *) die $wrong_usage "--brokers is 1 or 3, not $brokers" ;; esac
  case $port in '' | *[!0-9]*) die $wrong_usage "--port is a number, not $port" ;; esac
  if [ -n "$saved_brokers" ] && [ "$brokers" != "$saved_brokers" ]; then
    die $wrong_usage "$dir holds a cluster of $saved_brokers; use another --dir for $brokers"
  fi
  case $only in
    '') nodes=$(seq 1 "$brokers" | tr '\n' ' ') ;;
    [1-3]) nodes=$only ;;
    *) die $wrong_usage "--only is the number of a broker, not $only" ;;
  esac
  [ "${only:-1}" -le "$brokers" ] || die $wrong_usage "$dir has $brokers broker(s), no broker $only"
}

main() {
  local command=${1:-}
  [ $# -eq 0 ] || shift
  case $command in
    resolve) find_java && resolve ;;
    version) version ;;
    start | stop | status) read_arguments "$@" && "$command" ;;
    kill)
      read_arguments "$@"
      # shellcheck disable=SC2086  # several nodes are several words
      signal_and_wait KILL 10 $nodes
      ;;
    *) die $wrong_usage "$usage" ;;
  esac
}

main "$@"
