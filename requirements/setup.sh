#!/usr/bin/env bash
# Makes .venv from the locked requirements. Names what is missing, with the command that brings it.
# Run by make; safe to run again, and to interrupt: the stamp is written last.
# With the argument `create` it makes .venv and installs nothing: `make servers` needs no more.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=
need() { # what, the packages that bring it, as in a `Depends:` of Debian
    printf 'missing: %s\n' "$1" >&2
    packages="$packages${packages:+, }$2"
}
is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}
# Ubuntu 22.04 has Python 3.11 beside a python3 that is older.
python=${PYTHON:-python3}
if [ -z "${PYTHON:-}" ] && ! is_new_enough python3; then
    for other in python3.13 python3.12 python3.11; do
        if is_new_enough "$other"; then python=$other; break; fi
    done
fi
if ! is_new_enough "$python"; then
    need "Python 3.11 or newer (PYTHON=$python)" "python3-venv (>= 3.11) | python3.11-venv"
elif ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    brought_by=python3-venv
    [ "$python" = python3 ] || brought_by="${python##*/}-venv | $brought_by"
    need "Python's venv module" "$brought_by"
fi
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
release=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1) || release=
if [ "${release:-0}" -lt 17 ]; then
    # Debian 12 has 17, Debian 13 has 21, Ubuntu 22.04 and 24.04 have both. `default-jre-headless`
    # of Ubuntu 22.04 is 11.
    need "Java 17 or newer, for Spark" "openjdk-17-jre-headless | openjdk-21-jre-headless"
fi
# grep reads to the end: `grep -q` leaves early, and ldconfig's broken pipe would count as a failure.
# The PATH of a Debian user has no sbin, where ldconfig is.
if ! PATH="$PATH:/usr/sbin:/sbin" ldconfig -p 2>/dev/null | grep 'libstdc++\.so\.6' > /dev/null; then
    need "the C++ run-time library" libstdc++6
fi
command -v npm > /dev/null || need "npm, for MySQL 5.6" npm
if [ -n "$packages" ]; then
    printf "try: apt-get satisfy --yes --no-install-recommends '%s'\n" "$packages" >&2
    exit 1
fi

[ -x .venv/bin/python ] || "$python" -m venv .venv
[ "${1:-}" != create ] || exit 0
printf 'setting up .venv\n'
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
    -r requirements/bootstrap.txt
# Compiled now: where PYTHONDONTWRITEBYTECODE is set, every start would compile everything anew.
# PySpark is published as source only. Its wheel holds 450 MB of jars, which are compressed already:
# to compress them again takes 14 s of processor time, and everything else waits for it.
.venv/bin/uv pip install --quiet --python .venv/bin/python --require-hashes --compile-bytecode \
    --config-settings-package pyspark:--build-option=--compression=stored \
    -r requirements/lock.txt
.venv/bin/uv pip install --quiet --python .venv/bin/python --no-deps --config-setting editable_mode=compat --editable .
.venv/bin/python -m compileall -q gtid binlog topology repair spark_audit gtid_audit compose
touch .venv/.complete
