#!/bin/sh
# Makes two fresh servers a dual-primary pair with auto-position, and creates the auditor's account.
# Safe to run again: a server that has a channel keeps its history.
#
# Passwords come from the environment and go to the servers by standard input, never by arguments.
set -eu

run() { # run HOST < statements
    mysql --host="$1" --user=root --batch --skip-column-names
}

quoted() { # quoted TEXT: as an SQL string
    printf "'%s'" "$(printf '%s' "$1" | sed "s/\\\\/\\\\\\\\/g; s/'/''/g")"
}

replication_password=$(quoted "$REPLICATION_PASSWORD")
auditor_password=$(quoted "$GTID_AUDIT_PASSWORD")

# Accounts are made on each server by itself, outside its binary log: they are not to replicate.
prepare() { # prepare HOST
    run "$1" <<SQL
SET SESSION sql_log_bin = 0;
CREATE USER IF NOT EXISTS replication@'%' IDENTIFIED BY $replication_password;
GRANT REPLICATION SLAVE ON *.* TO replication@'%';
CREATE USER IF NOT EXISTS auditor@'%' IDENTIFIED BY $auditor_password;
GRANT REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO auditor@'%';
GRANT SELECT ON performance_schema.* TO auditor@'%';
SQL
}

follow() { # follow REPLICA SOURCE
    channels=$(echo "SELECT COUNT(*) FROM performance_schema.replication_connection_configuration" | run "$1")
    if [ "$channels" != 0 ]; then
        echo "$1 has a channel already"
        return
    fi
    # What the image wrote while it set itself up is nobody's history.
    run "$1" <<SQL
RESET BINARY LOGS AND GTIDS;
CHANGE REPLICATION SOURCE TO SOURCE_HOST = '$2', SOURCE_USER = 'replication',
    SOURCE_PASSWORD = $replication_password, SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1;
SQL
}

for host in db1 db2; do prepare "$host"; done
follow db1 db2
follow db2 db1
# Started last, when neither will lose its history any more.
for host in db1 db2; do echo "START REPLICA;" | run "$host"; done
echo "db1 and db2 replicate from each other"
