#!/bin/bash
# abi_test.sh — the types of tenon.h, as tests/data/tenon.abi has them: programs that were compiled with a released tenon.h go on
# working. Which of its functions libtenonrt has is in libtenonrt.symbols.
#
# abi_test.sh compares, and finds changes that are made to a copy of the header; exit status 77 where there is no abidiff
# (Debian: abigail-tools). abi_test.sh --renew writes what is compared with, which is for additions: functions, enumerators, and
# fields at the end of structs that begin with struct_size.
set -euo pipefail
root="$(realpath "$(dirname "$0")/../..")"
readonly known="$root/tests/data/tenon.abi"
if ! command -v abidiff >/dev/null; then
  echo "abidiff is not installed here"
  exit 77
fi
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# describe INCLUDE — a library with a variable of each type, and a pointer to each function, for abidw to read.
describe() {
  local header="$1/tenon/tenon.h"
  {
    echo '#include <tenon/tenon.h>'
    grep -oP '^[a-z][\w *]*\btenon_\w+(?=\()' "$header" | grep -oP 'tenon_\w+$' | sed 's/.*/__typeof__(\&&) type_of_&;/'
    grep -oP '^typedef (enum|struct) \Ktenon_\w+(?= \{)' "$header" | sed 's/.*/& type_of_&;/'
  } >"$work/types.c"
  "${CC:-cc}" -g -shared -fPIC -I "$1" -o "$work/types.so" "$work/types.c"
}

if [[ "${1:-}" == --renew ]]; then
  describe "$root/include"
  abidw --no-comp-dir-path --no-corpus-path --no-show-locs --no-elf-needed --type-id-style hash "$work/types.so" >"$known"
  exit
fi

compare() {
  abidiff --no-architecture --no-added-syms "$known" "$work/types.so"
}
describe "$root/include"
if ! compare; then
  echo "abi_test.sh: programs compiled with an earlier tenon.h would not work; if that is an addition, abi_test.sh --renew"
  exit 1
fi

failures=0
# changed SED — compares with a header that this changes.
changed() {
  mkdir -p "$work/include/tenon"
  sed "$1" "$root/include/tenon/tenon.h" >"$work/include/tenon/tenon.h"
  ! cmp -s "$root/include/tenon/tenon.h" "$work/include/tenon/tenon.h" || { echo "abi_test.sh: nothing is changed by $1" && exit 1; }
  describe "$work/include"
  compare >/dev/null
}
must_find() {
  ! changed "$1" || { echo "abi_test.sh: not found: $1" && failures=$((failures + 1)); }
}
must_accept() {
  changed "$1" || { echo "abi_test.sh: not accepted: $1" && failures=$((failures + 1)); }
}
must_find 's/^  int64_t check_weights;/  int64_t inserted;\n&/'
must_find 's/^  int64_t check_weights;/  int32_t check_weights;/'
must_find 's/^  TENON_C128 = 25,/  TENON_C128 = 26,/'
must_find 's/size_t output_count, const/int32_t output_count, const/'
must_find 's/^tenon_status tenon_synchronize.*//'
must_accept 's/^  TENON_C128 = 25,/&\n  TENON_MORE = 26,/'
must_accept 's/^tenon_status tenon_synchronize.*/&\nvoid tenon_more(int x);/'
must_accept 's|^/\* Such as "f32".*|/* The name. */|'
((failures == 0))
