#!/bin/bash
# runtime_library_test.sh — libtenonrt is small, needs libc, libm and libstdc++ alone, shows the functions of libtenonrt.symbols
# and nothing else, holds neither graphs nor ops, and has no instruction beyond those of every processor of its architecture.
#
# runtime_library_test.sh LIBTENONRT TENON_RUN
set -euo pipefail
failures=0
fail() {
  echo "runtime_library_test.sh: $*"
  failures=$((failures + 1))
}

readonly most_bytes=1500000
for file in "$1" "$2"; do
  name="$(basename "$file")"
  bytes="$(stat -L -c %s "$file")"
  ((bytes <= most_bytes)) || fail "$name has $bytes bytes, more than $most_bytes"
  needed="$(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vxE 'lib(c|m|stdc\+\+|gcc_s)\.so\.[0-9]+|ld-linux.*' || true)"
  [[ -z "$needed" ]] || fail "$name needs $needed"
  # Wide registers are those of processors that not everybody has.
  # All of the output is read: with -q, objdump would fail, and with it the pipe.
  wide="$(objdump -d --no-show-raw-insn "$file" | grep -cE '%[yz]mm[0-9]|%tmm[0-9]|\bz[0-9]+\.[bhsd]\b' || true)"
  ((wide == 0)) || fail "$name has $wide instructions that not every processor knows"
done

# The interface of the releases of one soname: functions are added to the list, and none is taken away or gets another version.
readonly known="$(dirname "$0")/libtenonrt.symbols"
shown="$(nm -D --defined-only "$1" | awk '$2 != "A" {print $3}' | LC_ALL=C sort | diff "$known" - || true)"
[[ -z "$shown" ]] || fail "other symbols are shown than $(basename "$known") lists (<):"$'\n'"$shown"
readelf -d "$1" | grep 'soname: \[libtenonrt.so.0\]' >/dev/null || fail "it is not called libtenonrt.so.0"
for text in 'N5tenon5GraphE' 'N5tenon5OpDefE' 'LLVM'; do
  ! grep -q "$text" "$1" || fail "it holds $text"
done
((failures == 0))
