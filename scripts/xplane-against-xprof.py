#!/usr/bin/env python3
"""Hold `scalemodel profile` against xprof's hlo_stats on an XPlane file: the time of each op over all devices.
usage: python3 scripts/xplane-against-xprof.py FILE.xplane.pb
Needs xprof of PyPI in an environment of its own; SCALEMODEL names the program (default build/scalemodel).
Exit status 1 when the time of an op differs by more than 0.1 %. Collectives are added up, as `profile` lists them."""
import json, os, subprocess, sys

from xprof.convert import raw_to_tool_data

PROGRAM = os.environ.get("SCALEMODEL", "build/scalemodel")


def by_xprof(path):
    data, _ = raw_to_tool_data.xspace_to_tool_data([path], "hlo_stats", {})
    table = json.loads(data)
    at = {c["label"]: i for i, c in enumerate(table["cols"])}
    seconds = {}
    for row in table["rows"]:
        value = [c["v"] if c else None for c in row["c"]]
        name = value[at["HLO op name"]]
        seconds[name] = seconds.get(name, 0) + value[at["Total self time (us)"]] / 1e6
    return seconds


def by_profile(path):
    done = subprocess.run([PROGRAM, "profile", path, "--json"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    answer = json.loads(done.stdout)
    return {o["name"]: o["seconds"] for o in answer["ops"]}, sum(c["seconds"] for c in answer["collectives"])


theirs = by_xprof(sys.argv[1])
ours, collectives = by_profile(sys.argv[1])
rest = sum(seconds for name, seconds in theirs.items() if name not in ours)
rows = [(name, ours[name], theirs[name]) for name in theirs if name in ours] + [("collectives", collectives, rest)]
for name, a, b in rows:
    print("%-32s profile %.9g s  xprof %.9g s" % (name, a, b))
sys.exit(any(abs(a - b) > 1e-3 * b for _, a, b in rows))
