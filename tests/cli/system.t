#!/bin/sh
. "$(dirname "$0")/runner.sh"
run_file "$root/tests/cli/system.golden"
finish_tests
