#!/bin/sh
# The page, --json and --csv of one question say the same (forms.py).
. "$(dirname "$0")/runner.sh"
for python in /usr/bin/python3 python3; do
    command -v "$python" >/dev/null || continue
    cd "$root/tests/cli" && "$python" forms.py "$program"
    exit
done
echo "1..0 # SKIP no Python"
