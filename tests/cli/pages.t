#!/bin/sh
# The examples of the man pages and of the documents are commands with their real output.
. "$(dirname "$0")/runner.sh"
for page in "$root"/man/*.1 "$root"/docs/notation.md "$root"/docs/training.md; do [ ! -f "$page" ] || run_file "$page"; done
finish_tests
