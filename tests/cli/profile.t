#!/bin/sh
. "$(dirname "$0")/runner.sh"
run_file "$root/tests/cli/profile.golden"
finish_tests
