#!/bin/bash
# check_conformance_test.sh — tools/check_conformance with a program that prints what each test says.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
printf '#!/bin/bash\n[[ "$*" == "conformance cases" ]] || exit 9\ncat "%s/output"\nexit "$(cat "%s/status")"\n' \
  "$folder" "$folder" >"$folder/program"
chmod +x "$folder/program"
printf '# why\n\nwrong a rounding\nunsupported b gradients\n' >"$folder/list"

failures=0

# expect STATUS OUTPUT TENON_STATUS TENON_OUTPUT
expect() {
  local status=0 output
  echo "$3" >"$folder/status"
  printf '%s\n' "$4" >"$folder/output"
  output="$(tools/check_conformance "$folder/program" "$folder/list" cases 2>&1)" || status=$?
  output="${output//$folder\//}"
  if [[ "$status" != "$1" || "$output" != "$2" ]]; then
    printf 'FAILED for\n%s\nexpected %s: %s\ngot %s: %s\n' "$4" "$1" "$2" "$status" "$output"
    failures=$((failures + 1))
  fi
}

expect 0 "the sum" 1 $'wrong a: off\nunsupported b: no\n  hint: wrong c: is no case\nthe sum'
expect 1 $'the sum\nThese do not pass, and list does not explain it:\nerror d\nunsupported c' 1 \
  $'wrong a: off\nunsupported b: no\nunsupported c: no\nerror d: crashed\nthe sum'
expect 1 $'the sum\nThese are in list, but that is not how they end now:\nunsupported b' 1 $'wrong a: off\nthe sum'
expect 1 $'the sum\nThese do not pass, and list does not explain it:\nerror b
These are in list, but that is not how they end now:\nunsupported b' 1 $'wrong a: off\nerror b: crashed\nthe sum'
expect 1 "check_conformance: tenon conformance ended with status 3" 3 $'wrong a: off\nunsupported b: no\nthe sum'
expect 1 "check_conformance: tenon conformance ended with status 2" 2 ''

if ((failures > 0)); then
  exit 1
fi
echo "check_conformance: all cases passed"
