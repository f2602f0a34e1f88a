#!/bin/sh
# The part of the official MySQL image's entrypoint that the stack and the tests use, for the image
# that is made from Debian packages: a data directory on the first start, with root's password from
# MYSQL_ROOT_PASSWORD_FILE or MYSQL_ROOT_PASSWORD, for MYSQL_ROOT_HOST; then the server.
set -eu

datadir=/var/lib/mysql

quoted() { # quoted TEXT: as an SQL string
    printf "'%s'" "$(printf '%s' "$1" | sed "s/\\\\/\\\\\\\\/g; s/'/''/g")"
}

initialise() { # initialise: an empty data directory becomes one with an account
    if [ -n "${MYSQL_ROOT_PASSWORD_FILE:-}" ]; then
        MYSQL_ROOT_PASSWORD=$(cat "$MYSQL_ROOT_PASSWORD_FILE")
    fi
    : "${MYSQL_ROOT_PASSWORD:?is not set, nor is MYSQL_ROOT_PASSWORD_FILE}"
    password=$(quoted "$MYSQL_ROOT_PASSWORD")
    host=$(quoted "${MYSQL_ROOT_HOST:-%}")
    umask 077
    accounts=$(mktemp /tmp/accounts.XXXXXX)
    chown mysql:mysql "$accounts"
    printf '%s\n' \
        "CREATE USER 'root'@$host IDENTIFIED BY $password;" \
        "GRANT ALL ON *.* TO 'root'@$host WITH GRANT OPTION;" \
        "ALTER USER 'root'@'localhost' IDENTIFIED BY $password;" > "$accounts"
    chown mysql:mysql "$datadir"
    mysqld --no-defaults --user=mysql --initialize-insecure --datadir="$datadir" \
        --init-file="$accounts" --skip-log-bin
    rm "$accounts"
}

case "${1:-mysqld}" in
-*) set -- mysqld "$@" ;;
esac
if [ "${1:-mysqld}" = mysqld ] && [ "$(id -u)" = 0 ]; then
    [ -d "$datadir/mysql" ] || initialise
    shift
    unset MYSQL_ROOT_PASSWORD
    # An option file, if one is named, has to be the first option.
    exec mysqld "$@" --user=mysql --datadir="$datadir"
fi
exec "$@"
