#!/bin/sh
. "$(dirname "$0")/runner.sh"
run_file "$root/tests/cli/matmul.golden"
finish_tests
