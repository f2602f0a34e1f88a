#!/bin/sh
# Makes fresh servers replicate in a shape, with auto-position, and creates the auditor's account:
#   init.sh pair|chain|multi-source|group SERVER…
# Safe to run again: a server that has a channel or is a member keeps its history.
#
# Passwords come from secret files and go to the servers by standard input, never by arguments.
set -eu

secrets=${SECRETS_FOLDER:-/run/secrets}
MYSQL_PWD=$(cat "$secrets/root")
export MYSQL_PWD

run() { # run HOST < statements
    mysql --host="$1" --user=root --batch --skip-column-names
}

quoted() { # quoted FILE: its content as an SQL string
    printf "'%s'" "$(sed "s/\\\\/\\\\\\\\/g; s/'/''/g" "$1")"
}

replication_password=$(quoted "$secrets/replication")
auditor_password=$(quoted "$secrets/auditor_password")

# Accounts are made on each server by itself, outside its binary log: they are not to replicate.
prepare() { # prepare HOST
    # A member of a group may be super_read_only by now.
    if [ "$(echo "SELECT COUNT(*) FROM mysql.user WHERE user = 'auditor'" | run "$1")" != 0 ]; then
        return
    fi
    run "$1" <<SQL
SET SESSION sql_log_bin = 0;
CREATE USER IF NOT EXISTS replication@'%' IDENTIFIED BY $replication_password;
GRANT REPLICATION SLAVE ON *.* TO replication@'%';
CREATE USER IF NOT EXISTS auditor@'%' IDENTIFIED BY $auditor_password;
GRANT REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO auditor@'%';
GRANT SELECT ON performance_schema.* TO auditor@'%';
SQL
}

is_fresh() { # is_fresh HOST
    known="performance_schema.replication_connection_configuration"
    [ "$(echo "SELECT COUNT(*) FROM $known" | run "$1")" = 0 ]
}

# What the image wrote while it set itself up is no history of these servers.
forget() { # forget HOST: unless it has a channel already
    if is_fresh "$1"; then echo "RESET BINARY LOGS AND GTIDS;" | run "$1"; fi
}

follow() { # follow REPLICA SOURCE-ADDRESS [CHANNEL]
    channel="FOR CHANNEL '${3:-}'"
    known="performance_schema.replication_connection_configuration"
    if [ "$(echo "SELECT COUNT(*) FROM $known WHERE HOST = '$2'" | run "$1")" != 0 ]; then return; fi
    run "$1" <<SQL
CHANGE REPLICATION SOURCE TO SOURCE_HOST = '$2', SOURCE_USER = 'replication',
    SOURCE_PASSWORD = $replication_password, SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1,
    SOURCE_CONNECT_RETRY = 2, SOURCE_RETRY_COUNT = 86400 $channel;
SQL
}

start() { # start HOST…: last, when no server loses its history any more
    for host in "$@"; do echo "START REPLICA;" | run "$host"; done
}

join() { # join HOST SEEDS ON|OFF: become a member; the first one makes the group
    if [ "$(echo "SELECT COUNT(*) FROM performance_schema.replication_group_members
            WHERE MEMBER_STATE = 'ONLINE'" | run "$1")" != 0 ]; then return; fi
    run "$1" <<SQL
SET PERSIST group_replication_group_name = '6d1f0001-0000-4000-8000-000000000000';
SET PERSIST group_replication_local_address = '$1:33061';
SET PERSIST group_replication_group_seeds = '$2';
SET PERSIST group_replication_recovery_get_public_key = ON;
SET GLOBAL group_replication_bootstrap_group = $3;
START GROUP_REPLICATION USER = 'replication', PASSWORD = $replication_password;
SET GLOBAL group_replication_bootstrap_group = OFF;
SQL
}

shape=$1
shift
for host in "$@"; do prepare "$host"; done
case $shape in
pair)
    for host in "$@"; do forget "$host"; done
    follow "$1" "$2.replication"
    follow "$2" "$1.replication"
    start "$1" "$2"
    ;;
chain)
    for host in "$@"; do forget "$host"; done
    follow "$2" "$1"
    follow "$3" "$2"
    start "$2" "$3"
    ;;
multi-source)
    for host in "$@"; do forget "$host"; done
    follow "$3" "$1" "from_$1"
    follow "$3" "$2" "from_$2"
    start "$3"
    ;;
group)
    seeds="$1:33061,$2:33061,$3:33061"
    for host in "$@"; do forget "$host"; done
    join "$1" "$seeds" ON
    join "$2" "$seeds" OFF
    join "$3" "$seeds" OFF
    ;;
esac
echo "$shape of $*: replication runs"
