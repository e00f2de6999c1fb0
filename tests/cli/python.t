#!/bin/sh
# The Python package over the library that lies beside the program: its tests, by Debian's Python.
. "$(dirname "$0")/runner.sh"
export SCALEMODEL="$program" SCALEMODEL_LIBRARY="$(dirname "$program")/libscalemodel.so"
[ -f "$SCALEMODEL_LIBRARY" ] || { echo "1..0 # no shared library" && exit 0; }
for python in /usr/bin/python3 python3; do
    "$python" -c 'import pytest' 2>/dev/null && break
done
export PYTHONPATH="$root/python" PYTHONDONTWRITEBYTECODE=1
cd "$place/work" && "$python" -m pytest -v -p no:cacheprovider --rootdir "$root/python" "$root/python/tests" >"$place/out" 2>&1
status=$?
sed -n 's/.*:://p' "$place/out" | awk -v status="$status" '
/ PASSED/ { print "ok " ++n " - " $1 }
/ SKIPPED/ { print "ok " ++n " - " $1 " # SKIP" }
/ FAILED/ || / ERROR/ { print "not ok " ++n " - " $1; bad = 1 }
END { if (!n || (status && !bad)) print "not ok " ++n " - the tests of the package"; print "1.." n }'
[ "$status" -eq 0 ] || sed 's/^/# /' "$place/out" | tail -n 60
exit "$status"
