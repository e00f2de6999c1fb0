#!/bin/sh
. "$(dirname "$0")/runner.sh"
run_file "$root/tests/cli/model.golden"
finish_tests
