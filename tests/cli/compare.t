#!/bin/sh
. "$(dirname "$0")/runner.sh"
run_file "$root/tests/cli/compare.golden"
finish_tests
