#!/bin/bash
# Tests tools/check_docs on documents made for each case.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
printf '#!/bin/bash\nif [[ "$1" == fail ]]; then echo no; exit 1; fi\nprintf "%%s\\n" "$@"\n' >"$folder/program"
chmod +x "$folder/program"

failures=0

# expect STATUS OUTPUT DOCUMENT — the document in $folder/a.md gives just this.
expect() {
  local status=0 output
  printf '%s\n' "$3" >"$folder/a.md"
  output="$(tools/check_docs "$folder/program" "$folder/a.md" 2>&1)" || status=$?
  output="${output//$folder\//}"
  if [[ "$status" != "$1" || "$output" != "$2" ]]; then
    printf 'FAILED for\n%s\nexpected %s: %s\ngot %s: %s\n' "$3" "$1" "$2" "$status" "$output"
    failures=$((failures + 1))
  fi
}

expect 0 "" $'```console\n$ tenon one two\none\ntwo\n$ tenon three\nthree\n```'
expect 0 "" $'text\n```\n$ tenon not-run\n```\n```console\n$ tenon a "b c"\na\nb c\n$ ls\nanything\n```'
expect 1 $'a.md:2: tenon one: it prints something else (-: written, +: printed)\n@@ -1 +1 @@\n-two\n+one' \
  $'```console\n$ tenon one\ntwo\n```'
expect 1 $'a.md:2: tenon fail: it prints something else (-: written, +: printed)\n@@ -1 +1,2 @@\n no\n+[exit status 1]' \
  $'```console\n$ tenon fail\nno\n```'
expect 0 "" $'```console\n$ tenon fail\nno\n[exit status 1]\n```'
expect 1 $'a.md:2: tenon one: it prints something else (-: written, +: printed)\n@@ -1 +1 @@\n-two\n+one\na.md:1: this block is not closed' \
  $'```console\n$ tenon one\ntwo'
expect 1 $'a.md:2: this block is not closed' $'text\n```console\n$ tenon one\none'
expect 1 'check_docs: there is no example in a.md' 'nothing here'

if ((failures > 0)); then
  exit 1
fi
echo "check_docs: all cases passed"
