#!/bin/bash
# add_model_test.sh — tenon_add_model of an installed Tenon: models are compiled as a project is built, again where they change,
# and linked into its programs and libraries; what it is given wrongly is an error when the project is configured.
#
# add_model_test.sh PREFIX
set -euo pipefail
prefix="$(realpath "$1")"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"
export TENON_CACHE="$work/cache"
failures=0
fail() {
  echo "add_model_test.sh: $*"
  failures=$((failures + 1))
}

write_model() {
  echo "graph main(%x: f32[2]) {
  %0 = constant(value=f32[] {$1})
  %1 = mul(%x, %0)
  return %1
}" >twice.tenon
}
write_model 2
cat >calls.h <<'END'
#include <stdio.h>
#include <tenon/tenon.h>
static int calls(tenon_status (*open)(const tenon_open_options*, tenon_program**)) {
  tenon_program* program;
  float x[] = {3, 4}, y[2];
  int64_t sizes[] = {2};
  tenon_tensor in = {.struct_size = sizeof in, .data = x, .bytes = sizeof x, .dtype = TENON_F32, .rank = 1, .sizes = sizes};
  tenon_tensor out = {.struct_size = sizeof out, .data = y, .bytes = sizeof y, .dtype = TENON_F32};
  if (open(NULL, &program) != TENON_OK || tenon_run(program, &in, 1, &out, 1, NULL) != TENON_OK)
    return puts(tenon_error_message());
  printf("%g %g\n", y[0], y[1]);
  tenon_free_program(program);
  return 0;
}
END
cat >own.c <<'END'
#include "calls.h"
#include "twice.h"
int main(void) { return calls(twice_open); }
END
cat >library.c <<'END'
#include "calls.h"
#include "other.h"
int in_library(void) { return calls(other_open); }
END
cat >linked.c <<'END'
int in_library(void);
int main(void) { return in_library(); }
END
case "$(uname -m)" in
  aarch64) processors="armv8 armv8.2+dotprod" ;;
  *) processors="x86-64 x86-64-v3" ;;
esac
cat >CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.25)
project(models LANGUAGES C)
find_package(tenon REQUIRED COMPONENTS runtime)
add_executable(own own.c)
tenon_add_model(own twice.tenon)
add_library(in_library STATIC library.c)
tenon_add_model(in_library twice.tenon NAME other TARGETS $processors OPTIONS --threads 1)
add_executable(linked linked.c)
target_link_libraries(linked PRIVATE in_library)
if(WRONG)
  cmake_language(EVAL CODE "\${WRONG}")
endif()
END

configure() {
  cmake -S . -B built -DCMAKE_PREFIX_PATH="$prefix" "$@" >configure.log 2>&1
}
build_and_run() {
  cmake --build built >build.log 2>&1 || { cat build.log >&2 && exit 1; }
  echo "$(built/own), $(built/linked)"
}
configure || { cat configure.log && exit 1; }
got="$(build_and_run)"
[[ "$got" == "6 8, 6 8" ]] || fail "the programs print $got"
build_and_run >/dev/null
! grep -q '^.*Compiling' build.log || fail "models are compiled again though they did not change"
sleep 0.01
write_model 3
got="$(build_and_run)"
[[ "$got" == "9 12, 9 12" ]] || fail "with another model, the programs print $got"

# refused CALL MESSAGE
refused() {
  ! configure -DWRONG="$1" || fail "$1 is accepted"
  tr '\n' ' ' <configure.log | tr -s ' ' | grep -F "tenon_add_model: $2" >/dev/null || { fail "$1 has another error:" && cat configure.log; }
}
refused "tenon_add_model(own missing.onnx)" "there is no $work/missing.onnx"
refused "tenon_add_model(nobody twice.tenon)" "there is no target nobody"
refused "tenon_add_model(own twice.tenon TARGET x86-64)" "'TARGET;x86-64' is not understood"
refused "set(TENON_PROGRAM TENON_PROGRAM-NOTFOUND)
tenon_add_model(own twice.tenon)" "the program tenon is not found"
refused "set(CMAKE_CROSSCOMPILING TRUE)
tenon_add_model(own twice.tenon)" "TARGETS must say for which processors"
((failures == 0))
