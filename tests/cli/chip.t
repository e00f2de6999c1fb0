#!/bin/sh
. "$(dirname "$0")/runner.sh"
run_file "$root/tests/cli/chip.golden"
finish_tests
