#!/bin/sh
# Writes five rows a second to each server named, until it is stopped: load.sh "SERVER SERVER…"
set -eu

MYSQL_PWD=$(cat /run/secrets/root)
export MYSQL_PWD

for host in $1; do
    {
        echo "CREATE DATABASE IF NOT EXISTS load_of_$host;"
        echo "CREATE TABLE IF NOT EXISTS load_of_$host.t (id INT AUTO_INCREMENT PRIMARY KEY, at DATETIME);"
        # One session: a connection for each row would be most of the load.
        while :; do
            echo "INSERT INTO load_of_$host.t (at) VALUES (NOW());"
            sleep 0.2
        done
    } | mysql --host="$host" --user=root --unbuffered &
done
wait
