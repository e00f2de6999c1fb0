#!/bin/sh
. "$(dirname "$0")/runner.sh"
run_file "$root/tests/cli/reshard.golden"
finish_tests
