#!/bin/bash
# static_test.sh — the static program does what the ordinary one does, in a file system that holds nothing else.
#
# static_test.sh STATIC_TENON TENON; exit status 77 where this user may not change the root.
set -euo pipefail
program="$(realpath "$1")"
ordinary="$(realpath "$2")"

root="$(mktemp -d)"
trap 'rm -rf "$root"' EXIT
mkdir "$root/tmp"
cp "$program" "$root/tenon"
inside() {
  env -i PATH="$PATH" unshare -r chroot "$root" /tenon "$@"
}
if ! unshare -r chroot / true 2>/dev/null; then
  echo "unshare and chroot are not allowed here"
  exit 77
fi

# Generated code that calls functions of the C library.
cat >"$root/calls.tenon" <<'TEXT'
graph main(%x: f32[64], %z: f32[64], %d: f64[64]) {
  %a = sin(%x)
  %b = mod(%x, %z)
  %c = mod(%d, %d)
  %h = cast(%d, to=f16)
  return %a, %b, %c, %h
}
TEXT

# Where nothing says how large the caches are, other kernels may be chosen, which round otherwise.
four_digits() {
  sed -E 's/([0-9]\.[0-9]{4})[0-9]+/\1/g'
}
failures=0
cd "$root"
for command in "--version" "run builtin:attention" "run builtin:resnet_block" "run calls.tenon" "run builtin:cond --engine reference" \
  "verify builtin:tiny --samples 1" "print builtin:attention --as hlo" "ops softmax"; do
  read -ra arguments <<<"$command"
  if ! diff <(TENON_CACHE='' "$ordinary" "${arguments[@]}" 2>&1 | four_digits) <(inside "${arguments[@]}" 2>&1 | four_digits); then
    echo "static_test.sh: tenon $command prints something else in an empty file system"
    failures=$((failures + 1))
  fi
done
# With threads; a build without a code generator has nothing to time.
if ! "$ordinary" --version | grep -x 'cpu: not built' >/dev/null &&
  ! inside bench builtin:resnet_block --seconds 0 --threads 2 | grep '^kernels ' >/dev/null; then
  echo "static_test.sh: tenon bench does not run in an empty file system"
  failures=$((failures + 1))
fi
((failures == 0))
