#!/bin/sh
. "$(dirname "$0")/runner.sh"
run_file "$root/tests/cli/calibrate.golden"
finish_tests
