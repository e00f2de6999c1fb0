#!/bin/sh
. "$(dirname "$0")/runner.sh"
run_file "$root/tests/cli/serve.golden"
finish_tests
