#!/bin/bash
# runtime_library_test.sh — libtenonrt is small, needs libc, libm and libstdc++ alone, shows tenon.h and nothing else, holds
# neither graphs nor ops, and has no instruction beyond those of every processor of its architecture.
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
  if objdump -d --no-show-raw-insn "$file" | grep -qE '%[yz]mm[0-9]|%tmm[0-9]|\bz[0-9]+\.[bhsd]\b'; then
    fail "$name has instructions that not every processor knows"
  fi
done

shown="$(nm -D --defined-only "$1" | awk '{print $3}' | grep -vE '^(tenon_[a-z_]+@@)?TENON_0$|^tenon_[a-z_]+@@TENON_0$' || true)"
[[ -z "$shown" ]] || fail "these symbols are shown: $shown"
for function in tenon_open tenon_run tenon_free_program tenon_error_message tenon_version tenon_dtype_name tenon_synchronize \
  tenon_program_input tenon_program_output tenon_program_count_inputs tenon_program_count_outputs; do
  nm -D --defined-only "$1" | grep -q " $function@@TENON_0" || fail "$function is not there"
done
readelf -d "$1" | grep -q 'soname: \[libtenonrt.so.0\]' || fail "it is not called libtenonrt.so.0"
for text in 'N5tenon5GraphE' 'N5tenon5OpDefE' 'LLVM'; do
  ! grep -q "$text" "$1" || fail "it holds $text"
done
((failures == 0))
