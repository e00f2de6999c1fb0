#!/bin/sh
. "$(dirname "$0")/runner.sh"
run_file "$root/tests/cli/run_train.golden"
finish_tests
