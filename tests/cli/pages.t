#!/bin/sh
# The examples of the man pages and of the documents are commands with their real output. FILE...: of these alone.
. "$(dirname "$0")/runner.sh"
[ $# -gt 0 ] || set -- "$root"/man/*.1 "$root"/docs/*.md "$root"/docs/book/*.md
for page in "$@"; do run_file "$page"; done
finish_tests
