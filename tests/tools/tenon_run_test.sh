#!/bin/bash
# tenon_run_test.sh — tenon-run gives the numbers that tenon gives, in a file system that holds nothing but itself and the
# libraries of C and C++.
#
# tenon_run_test.sh TENON_RUN TENON; exit status 77 where this user may not change the root.
set -euo pipefail
program="$(realpath "$1")"
tenon="$(realpath "$2")"

root="$(mktemp -d)"
trap 'rm -rf "$root"' EXIT
if ! unshare -r chroot / true 2>/dev/null; then
  echo "unshare and chroot are not allowed here"
  exit 77
fi
cp "$program" "$root/tenon-run"
ldd "$program" | grep -o '/[^ ]*' | xargs -I{} cp --parents -L {} "$root"

cd "$root"
"$tenon" compile builtin:attention -o attention.tnp >/dev/null
cat >inputs.tenon <<'TEXT'
graph inputs(%q: f32[2,4,32,16], %k: f32[2,4,32,16], %v: f32[2,4,32,16]) {
  return %q, %k, %v
}
TEXT
"$tenon" run inputs.tenon --engine reference --outputs inputs.npz >/dev/null
"$tenon" run builtin:attention --inputs inputs.npz --outputs wanted.npz >wanted.txt
env -i PATH="$PATH" unshare -r chroot "$root" /tenon-run attention.tnp --inputs inputs.npz --outputs got.npz >got.txt
diff wanted.txt got.txt
cmp wanted.npz got.npz
