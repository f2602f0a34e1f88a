#!/usr/bin/env bash
# Runs the quick tests in another environment: other versions of packages, or another Python.
# Usage: other_environment.sh lowest-direct|highest PYTHON [argument of pytest …]
# Needs .venv, whose uv makes the environment in .cache. A Python that is not installed is reported
# and skipped: uv downloads none here.
set -euo pipefail
cd "$(dirname "$0")/.."

resolution=$1 wanted=$2
shift 2
uv=$PWD/.venv/bin/uv
python=
for candidate in "$wanted" $(type -ap "python$wanted" || true) \
        "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$wanted"*/bin/python; do
    # A shim of pyenv is there, and does not run, where another version is selected.
    if [ -x "$candidate" ] && "$candidate" -c 'import venv' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    printf 'skipped: Python %s is not installed here\n         try: %s\n' "$wanted" \
        "pyenv install $wanted, or apt-get install python$wanted-venv where Debian has it" >&2
    exit 0
fi
release=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
place=${GTID_AUDIT_ENVIRONMENTS:-.cache/environments}/$resolution-$release
printf 'setting up %s\n' "$place"
mkdir -p "$place"
"$uv" pip compile pyproject.toml --quiet --extra dev --resolution "$resolution" \
    --python-version "$release" --output-file "$place/versions.txt"
[ -x "$place/bin/python" ] || "$uv" venv --quiet --allow-existing --python "$python" "$place"
"$uv" pip sync --quiet --python "$place/bin/python" "$place/versions.txt"
"$uv" pip install --quiet --python "$place/bin/python" --no-deps \
    --config-setting editable_mode=compat --editable .
export PYTHONPATH=$PWD PYTHONDONTWRITEBYTECODE=1
"$place/bin/python" -m pytest --numprocesses logical -p no:cacheprovider \
    --maxprocesses 4 --dist loadscope --no-loadscope-reorder -p tests.distribution \
    -p tests.hypothesis_profiles --hypothesis-profile=quick \
    -m "not mysql and not spark and not slow and not long" "$@"
