#!/bin/sh
. "$(dirname "$0")/runner.sh"
run_file "$root/tests/cli/recipes.golden"
finish_tests
