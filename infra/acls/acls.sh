#!/usr/bin/env bash
# Prints or applies the access rights of acls.txt with Kafka's own tool.
# Written for bash 3.2 as well, which is what macOS has.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here table="$here/acls.txt" kafka="$here/../kafka"
readonly usage="usage: acls.sh print [OPTION...]
       acls.sh apply --bootstrap HOST:PORT [--command-config FILE] [OPTION...]

print writes the kafka-acls commands, apply runs them: as often as you like, what is
there stays. FILE has the properties of an administrator's login.

  --role ROLE             of this role only: worker, evaluators, admin, agent, operator or evaluator
  --principal TYPE:NAME   who has the role; default User:tgate-ROLE (needs --role)
  --app-id ID             the setting app_id; default trajectory-gate
  --prefix TEXT           before every topic's default name
  --topic DEFAULT=NAME    a topic with another name, as in the setting topic_names; may be repeated

KAFKA_ACLS names a kafka-acls to use; without it, the one that infra/kafka fetches."

readonly failed=1 wrong_usage=2

die() { # die CODE MESSAGE...
  local code=$1
  shift
  printf 'acls.sh: %s\n' "$@" >&2
  exit "$code"
}

# --- the table --------------------------------------------------------------

rows() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$table"; }

every_topic() {
  rows | awk '$2 == "topic" { for (i = 4; i <= NF; i++) if ($i != "every-topic") print $i }' | sort -u
}

actual_name() { # actual_name RESOURCE NAME
  local pair
  if [ "$1" != topic ]; then
    printf '%s' "${2//\{app-id\}/$app_id}"
    return
  fi
  for pair in $renamed; do
    if [ "${pair%%=*}" = "$2" ]; then
      printf '%s' "${pair#*=}"
      return
    fi
  done
  printf '%s' "$prefix$2"
}

# --- one row, one command ---------------------------------------------------

command_of() { # command_of ROLE RESOURCE OPERATIONS NAMES... sets $arguments
  local role=$1 resource=$2 operations=$3 pattern=literal name
  shift 3
  arguments=(--add --allow-principal "${principal:-User:tgate-$role}")
  for name in ${operations//,/ }; do arguments+=(--operation "$name"); done
  if [ "$1" = every-topic ]; then
    # shellcheck disable=SC2046  # topics have no spaces
    set -- $(every_topic)
  fi
  for name in "$@"; do
    case $name in *\*) pattern=prefixed ;; esac
    name=$(actual_name "$resource" "$name")
    arguments+=("--$resource" "${name%\*}")
  done
  arguments+=(--resource-pattern-type "$pattern")
}

print_command() {
  printf 'kafka-acls --bootstrap-server %q' "${bootstrap:-HOST:PORT}"
  if [ -n "$config" ]; then printf ' --command-config %q' "$config"; fi
  printf ' %q' "${arguments[@]}"
  printf '\n'
}

run_command() {
  local said login=()
  if [ -n "$config" ]; then login=(--command-config "$config"); fi
  said=$(kafka_acls --bootstrap-server "$bootstrap" ${login[@]+"${login[@]}"} "${arguments[@]}" 2>&1 </dev/null) ||
    die $failed "$(print_command)" "failed:" "$(printf '%s\n' "$said" | grep -v '^[[:space:]]*at ' | head -n 5)"
}

kafka_acls() {
  if [ -n "${KAFKA_ACLS:-}" ]; then
    "$KAFKA_ACLS" "$@"
  else
    "${JAVA_HOME:+$JAVA_HOME/bin/}java" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC "-Dlog4j2.configurationFile=$kafka/log4j2.yaml" \
      -cp "$kafka/jars/*" org.apache.kafka.tools.AclCommand "$@"
  fi
}

# --- commands ---------------------------------------------------------------

for_each_row() { # for_each_row FUNCTION
  local row found=""
  while read -r row; do
    # shellcheck disable=SC2086  # a row is words
    set -f -- "$1" $row
    if [ -n "$only" ] && [ "$2" != "$only" ]; then continue; fi
    found=yes
    command_of "${@:2}"
    "$1"
  done <<<"$(rows)"
  [ -n "$found" ] || die $wrong_usage "no role $only; there are: $(rows | awk '{ print $1 }' | sort -u | tr '\n' ' ')"
}

read_arguments() { # sets $only $principal $app_id $prefix $renamed $bootstrap $config
  only="" principal="" app_id=trajectory-gate prefix="" renamed="" bootstrap="" config=""
  while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || die $wrong_usage "$1 needs a value" "$usage"
    case $1 in
      --role) only=$2 ;;
      --principal) principal=$2 ;;
      --app-id) app_id=$2 ;;
      --prefix) prefix=$2 ;;
      --topic) rename "$2" ;;
      --bootstrap) bootstrap=$2 ;;
      --command-config) config=$2 ;;
      *) die $wrong_usage "unknown option $1" "$usage" ;;
    esac
    shift 2
  done
  # One person in all roles would undo what the roles are for.
  [ -z "$principal" ] || [ -n "$only" ] || die $wrong_usage "--principal needs --role" "$usage"
}

rename() {
  case $1 in *' '* | =* | *=) die $wrong_usage "--topic is DEFAULT=NAME, not $1" ;; *=*) ;; *) die $wrong_usage "--topic is DEFAULT=NAME, not $1" ;; esac
  every_topic | grep -qxF -- "${1%%=*}" || die $wrong_usage "no topic ${1%%=*}; there are: $(every_topic | tr '\n' ' ')"
  renamed="$renamed $1"
}

main() {
  local command=${1:-}
  [ $# -eq 0 ] || shift
  case $command in
    print) read_arguments "$@" && for_each_row print_command ;;
    apply)
      read_arguments "$@"
      [ -n "$bootstrap" ] || die $wrong_usage "--bootstrap is needed" "$usage"
      if [ -z "${KAFKA_ACLS:-}" ]; then bash "$kafka/kafka.sh" resolve; fi
      for_each_row run_command
      ;;
    *) die $wrong_usage "$usage" ;;
  esac
}

main "$@"
