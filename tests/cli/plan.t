#!/bin/sh
. "$(dirname "$0")/runner.sh"
run_file "$root/tests/cli/plan.golden"
finish_tests
