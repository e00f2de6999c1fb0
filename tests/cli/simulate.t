#!/bin/sh
. "$(dirname "$0")/runner.sh"
run_file "$root/tests/cli/simulate.golden"
finish_tests
