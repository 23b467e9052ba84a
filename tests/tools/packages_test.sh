#!/bin/bash
# packages_test.sh — the Debian packages that cpack makes of a build: what they hold and need, and that it works where nothing else
# of Tenon is: a model is compiled by one, and run by another among the libraries of C and C++ alone.
#
# packages_test.sh BUILD writes them to BUILD/debs; exit status 77 where there are no tools for packages.
set -euo pipefail
build="$(realpath "$1")"
for tool in dpkg-deb dpkg-shlibdeps file; do
  if ! command -v "$tool" >/dev/null; then
    echo "$tool is not installed here"
    exit 77
  fi
done
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
failures=0
fail() {
  echo "packages_test.sh: $*"
  failures=$((failures + 1))
}

rm -rf "$build/debs"
cd "$build"
cpack -G DEB -B "$build/debs" >"$work/log" 2>&1 || { cat "$work/log" && exit 1; }
rm -rf "$build/debs/_CPack_Packages"
cd "$work"
version="$(sed -n 's/^CMAKE_PROJECT_VERSION:[^=]*=//p' "$build/CMakeCache.txt")"

deb_of() {
  echo "$build/debs/$1_$version-1_$(dpkg --print-architecture).deb"
}
# holds PACKAGE REGEX... — exactly the files that these describe, besides its documents.
holds() {
  local package="$1" file regex extra
  shift
  dpkg-deb -c "$(deb_of "$package")" | awk '$1 !~ /^d/ {print $6}' | sed 's/^\.//' | grep -v '^/usr/share/' >files || true
  for regex in "$@"; do
    grep -qxE "$regex" files || fail "$package holds no $regex"
  done
  extra="$(printf '%s\n' "$@" | grep -vxEf - files || true)"
  [[ -z "$extra" ]] || fail "$package holds "$extra
}
# needs PACKAGE FIELD REGEX — that the field matches as a whole.
needs() {
  local got
  got="$(dpkg-deb -f "$(deb_of "$1")" "$2" | sed -E 's/ \([^)]*\)//g')"
  [[ "$got" =~ ^($3)$ ]] || fail "$1: $2 is '$got', not $3"
}
lib='/usr/lib(/[^/]+-linux-gnu)?'
small='(libc6|libgcc-s1|libstdc\+\+6)(, (libc6|libgcc-s1|libstdc\+\+6))*'
holds tenon /usr/bin/tenon
holds libtenonrt0 "$lib/libtenonrt\.so\.0" "$lib/libtenonrt\.so\.$version"
holds libtenonrt-dev "$lib/libtenonrt\.so" /usr/include/tenon/tenon.h "$lib/cmake/tenon/tenon(Config|ConfigVersion|Model)\.cmake"
holds tenon-run /usr/bin/tenon-run
holds libtenon-dev "$lib/libtenon\.a" /usr/include/tenon/tenon.hpp /usr/include/tenon/extend.hpp '/usr/include/tenon/rooms/.*\.h' \
  "$lib/cmake/tenon/(dependencies|tenonTargets.*)\.cmake"
needs libtenonrt0 Depends "$small"
needs tenon-run Depends "$small"
needs libtenonrt-dev Depends libtenonrt0
needs libtenon-dev Depends 'libtenonrt-dev, .*libisl-dev.*'
! dpkg-deb -f "$(deb_of tenon)" Depends | grep tenonrt >/dev/null || fail "tenon depends on libtenonrt"
dpkg-deb --ctrl-tarfile "$(deb_of libtenonrt0)" | tar -xO ./shlibs | grep -xF "libtenonrt 0 libtenonrt0 (>= $version)" >/dev/null ||
  fail "libtenonrt0 does not say which version programs need"

# tenon is used where it is unpacked; tenon-run where nothing else is.
for package in tenon libtenonrt0 libtenonrt-dev; do
  dpkg-deb -x "$(deb_of "$package")" here
done
export TENON_CACHE="$work/cache"
here/usr/bin/tenon compile builtin:tiny -o tiny.tnp >/dev/null
cat >inputs.tenon <<'END'
graph inputs(%x: f32[1,4]) {
  return %x
}
END
here/usr/bin/tenon run inputs.tenon --engine reference --outputs inputs.npz >/dev/null
here/usr/bin/tenon run builtin:tiny --inputs inputs.npz >wanted.txt
if unshare -r chroot / true 2>/dev/null; then
  dpkg-deb -x "$(deb_of tenon-run)" alone
  ldd alone/usr/bin/tenon-run | grep -o '/[^ ]*' | xargs -I{} cp --parents -L {} alone
  cp tiny.tnp inputs.npz alone
  env -i PATH="$PATH" unshare -r chroot alone /usr/bin/tenon-run tiny.tnp --inputs inputs.npz >got.txt
  diff wanted.txt got.txt || fail "tenon-run of its package shows something else"
fi

# A project that is built against the development package alone, and that asks for more than that has.
cat >main.c <<'END'
#include <stdio.h>
#include <tenon/tenon.h>
int main(void) { return printf("%s\n", tenon_version()) < 0; }
END
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(packaged LANGUAGES C)
find_package(tenon REQUIRED COMPONENTS ${ASKED})
add_executable(packaged main.c)
target_link_libraries(packaged PRIVATE tenon::runtime)
END
configure() {
  cmake -S . -B built -DCMAKE_PREFIX_PATH="$work/here/usr" -DASKED="$1" >configure.log 2>&1
}
if configure runtime && cmake --build built >configure.log 2>&1; then
  [[ "$(built/packaged)" == "$version" ]] || fail "the program built against libtenonrt-dev prints $(built/packaged)"
else
  cat configure.log
  fail "no program can be built against libtenonrt-dev"
fi
! configure "" || fail "tenon::tenon is found without libtenon-dev"
grep -q 'libtenon-dev' configure.log || fail "CMake does not say that libtenon-dev is missing"
((failures == 0))
