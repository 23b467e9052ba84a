#!/bin/bash
# Tests tools/check_docs on documents made for each case.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/build/prefix/bin"
printf '#!/bin/bash\nif [[ "$1" == fail ]]; then echo no; exit 1; fi\nprintf "%%s\\n" "$@"\n' >"$folder/build/prefix/bin/tenon"
chmod +x "$folder/build/prefix/bin/tenon"

failures=0

# expect STATUS OUTPUT DOCUMENT — the document in $folder/a.md gives just this.
expect() {
  local status=0 output
  printf '%s\n' "$3" >"$folder/a.md"
  output="$(tools/check_docs "$folder/build" "$folder/a.md" 2>&1)" || status=$?
  output="${output//$folder\//}"
  if [[ "$status" != "$1" || "$output" != "$2" ]]; then
    printf 'FAILED for\n%s\nexpected %s: %s\ngot %s: %s\n' "$3" "$1" "$2" "$status" "$output"
    failures=$((failures + 1))
  fi
}
other=": it prints something else (-: written, +: printed)"

# Sessions.
expect 0 "" 'nothing here'
expect 0 "" $'```console\n$ tenon one two\none\ntwo\n$ tenon three\nthree\n```'
expect 0 "" $'text\n- a list:\n  ```console\n  $ tenon a "b c"\n  a\n  b c\n  $ true\n  ```'
expect 0 "" $'```console\n$ tenon one \\\n  two | tail -n 1\ntwo\n```'
expect 1 "a.md:2: tenon one$other"$'\n@@ -1 +1 @@\n-two\n+one' $'```console\n$ tenon one\ntwo\n```'
expect 1 "a.md:2: tenon fail$other"$'\n@@ -1 +1,2 @@\n no\n+[exit status 1]' $'```console\n$ tenon fail\nno\n```'
expect 0 "" $'```console\n$ tenon fail\nno\n[exit status 1]\n$ tenon fail | cat\nno\n[exit status 1]\n```'
expect 1 "a.md:2: ls nowhere >/dev/null 2>&1$other"$'\n@@ -0,0 +1 @@\n+[exit status 2]' $'```console\n$ ls nowhere >/dev/null 2>&1\n```'
expect 1 'a.md:2: this block is not closed' $'text\n```console\n$ tenon one\none'
expect 1 'a.md:1: this block does not begin with a command' $'```console\ntenon one\n```'

# Parts that are left out, and numbers that vary.
expect 0 "" $'```console\n$ tenon a b c d e\na\n…\nd\ne\n$ tenon a b\n…\n$ tenon a b c\n…\nb\n…\n```'
expect 1 "a.md:2: tenon a b c$other"$'\n@@ -1,3 +1,3 @@\n a\n-…\n-d\n+b\n+c' $'```console\n$ tenon a b c\na\n…\nd\n```'
expect 1 "a.md:2: tenon a$other"$'\n@@ -1,3 +1 @@\n a\n-…\n-a' $'```console\n$ tenon a\na\n…\na\n```'
expect 0 "" $'```console measured\n$ tenon "median  12.5 ms 3x"\nmedian 900 µs   1.25x\n```'
expect 1 "a.md:2: tenon \"median 12.5 ms\"$other"$'\n@@ -1 +1 @@\n-mean N\n+median N' \
  $'```console measured\n$ tenon "median 12.5 ms"\nmean 1 s\n```'

# Files.
expect 0 "" $'```text some/file.txt\na\n b\n```\n```console\n$ cat some/file.txt\na\n b\n$ ls ~/.local/bin\ntenon\n```'
expect 1 'a.md:2: no command after this block names some/file.txt' $'file.txt:\n```text some/file.txt\na\n```\n```console\n$ tenon a\na\n```'
expect 0 "" $'LICENSE:\n```text LICENSE\nApache License\nVersion 2.0, January 2004\n```'
expect 1 'a.md:1: neither the text nor a command names LICENSE' $'```text LICENSE\nApache License\n```'
expect 1 'a.md:2: LICENSE does not hold this' $'LICENSE:\n```text LICENSE\nApache License\nVersion 1.0\n```'
expect 1 'a.md:2: docs/nowhere.txt is not there' $'nowhere.txt:\n```text docs/nowhere.txt\na\n```'

# Links.
expect 0 "" $'# A heading, with `code`\n[here](#a-heading-with-code) [there](a.md#a-heading-with-code) [folder](build) [far](https://example.com/#x)'
expect 1 'a.md:1: b.md leads nowhere: there is no such file' '[b](b.md)'
expect 1 'a.md:2: a.md#other leads nowhere: there is no such heading' $'# One\n[a](a.md#other)'
expect 0 "" $'```console\n$ tenon "[b](b.md)"\n[b](b.md)\n```'

# What nothing runs.
nothing='nothing runs this block: begin it with ```console, or with ```LANGUAGE PATH if it is a file'
expect 1 "a.md:1: $nothing" $'```\n$ tenon one\n```'
expect 1 "a.md:1: $nothing" $'```cpp\nint x;\n```'
expect 1 "a.md:1: $nothing" $'~~~\ntext\n~~~'
expect 1 "a.md:1: $nothing" $'```console quickly\n$ tenon one\none\n```'

if ((failures > 0)); then
  exit 1
fi
echo "check_docs: all cases passed"
