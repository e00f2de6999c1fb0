#!/bin/sh
# The examples of the man pages and of the documents are commands with their real output.
. "$(dirname "$0")/runner.sh"
for page in "$root"/man/*.1 "$root"/docs/*.md; do run_file "$page"; done
finish_tests
