#!/bin/sh
. "$(dirname "$0")/runner.sh"
run_file "$root/tests/cli/mfu.golden"
finish_tests
