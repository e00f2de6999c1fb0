#!/bin/sh
. "$(dirname "$0")/runner.sh"
run_file "$root/tests/cli/command.golden"
finish_tests
