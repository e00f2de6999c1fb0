#!/bin/sh
. "$(dirname "$0")/runner.sh"
run_file "$root/tests/cli/collective.golden"
finish_tests
