#!/bin/bash
# installed_test.sh — installs Tenon, builds the programs of examples/installed against it, somewhere else, and compares
# what they print with the documentation, which also shows their source.
#
# installed_test.sh BUILD CXX [FLAGS...]: from the build folder BUILD, with the compiler CXX and flags of its own.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)"
build="$1"
compiler="$2"
flags="${*:3}"

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cp -r "$root/examples/installed" "$folder/example"
cmake --install "$build" --prefix "$folder/prefix" >/dev/null
# The C compiler that belongs to it.
case "$compiler" in
  *clang++*) c_compiler="${compiler/clang++/clang}" ;;
  *g++*) c_compiler="${compiler/g++/gcc}" ;;
  *) c_compiler=cc ;;
esac
if ! cmake -S "$folder/example" -B "$folder/build" -DCMAKE_PREFIX_PATH="$folder/prefix" -DCMAKE_C_COMPILER="$c_compiler" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags" >"$folder/log" 2>&1 ||
  ! cmake --build "$folder/build" >>"$folder/log" 2>&1; then
  cat "$folder/log" >&2
  exit 1
fi

# expect DOCUMENT BLOCK — the document holds the block.
expect() {
  if [[ "$(<"$root/$1")" != *"$2"* ]]; then
    printf '%s lacks\n%s\n' "$1" "$2" >&2
    exit 1
  fi
}
example="$root/examples/installed"
expect docs/c.md '```cmake'$'\n'"$(<"$example/CMakeLists.txt")"$'\n```'
expect docs/c.md '```c'$'\n'"$(<"$example/run.c")"$'\n```'
expect docs/c.md '```console'$'\n$ run_c\n'"$("$folder/build/run_c")"$'\n```'
expect docs/cpp.md '```cpp'$'\n'"$(<"$example/run.cpp")"$'\n```'
expect docs/cpp.md '```console'$'\n$ run_cpp\n'"$("$folder/build/run_cpp")"$'\n```'
