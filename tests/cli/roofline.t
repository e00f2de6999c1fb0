#!/bin/sh
. "$(dirname "$0")/runner.sh"
run_file "$root/tests/cli/roofline.golden"
finish_tests
