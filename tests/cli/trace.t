#!/bin/sh
. "$(dirname "$0")/runner.sh"
run_file "$root/tests/cli/trace.golden"
finish_tests
