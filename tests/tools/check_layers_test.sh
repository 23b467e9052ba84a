#!/bin/bash
# check_layers_test.sh — tools/check_layers against small trees made for the purpose: what it accepts and what it reports.
set -euo pipefail

check_layers="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/tools/check_layers"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
failures=0

# A tree with the rooms low, middle/{left,right} and high, to which each test adds its files.
new_tree() {
  rm -rf "$scratch/src"
  mkdir -p "$scratch/src"/{low,middle/left,middle/right,high}
  printf '# lowest first\nlow\nmiddle\nhigh\n\napart: middle/left middle/right\napart: high low\n' >"$scratch/src/layers.txt"
}

write() { printf '%s\n' "${@:2}" >"$scratch/src/$1"; }

# expect NAME STATUS OUTPUT
expect() {
  local output status=0
  output="$("$check_layers" "$scratch/src" 2>&1)" || status=$?
  if [[ "$status" != "$2" || "$output" != "$3" ]]; then
    printf 'FAILED: %s\n  wanted status %s and:\n%s\n  got status %s and:\n%s\n' "$1" "$2" "$3" "$status" "$output"
    failures=$((failures + 1))
  fi
}

new_tree
expect "empty rooms are fine" 0 ""

new_tree
write low/a.h '#include <vector>' '#include <sys/mman.h>' '#include "a.h"' '#include "low/b.h"'
write middle/left/a.cpp '#include "low/a.h"' '#include "middle/left/a.h"' '#include "middle/a.h"'
write high/a.cpp '#include "middle/left/a.h"' '#include "middle/right/a.h"'
expect "downward includes, its own room, and the system's are fine" 0 ""

new_tree
write low/a.h '#pragma once' '' '#include "middle/a.h"'
write middle/right/a.cpp '  #  include "high/deep/a.h"  // why'
expect "upward includes are reported with their line" 1 \
'src/low/a.h:3: low includes "middle/a.h", but middle comes after it in layers.txt
src/middle/right/a.cpp:1: middle includes "high/deep/a.h", but high comes after it in layers.txt'

new_tree
write low/a.h '#include <high/a.h>'
expect "angle brackets do not hide an upward include" 1 \
'src/low/a.h:1: low includes "high/a.h", but high comes after it in layers.txt'

new_tree
write middle/left/a.h '#include "middle/right/a.h"'
write middle/right/a.h '#include "middle/left/a.h"'
write high/a.h '#include "low/a.h"'
expect "folders kept apart include each other in neither direction" 1 \
'src/high/a.h:1: includes "low/a.h", but high and low never include each other
src/middle/left/a.h:1: includes "middle/right/a.h", but middle/left and middle/right never include each other
src/middle/right/a.h:1: includes "middle/left/a.h", but middle/left and middle/right never include each other'

new_tree
mkdir "$scratch/src/middle/leftover"
write middle/leftover/a.h '#include "middle/right/a.h"'
expect "a folder whose name only begins like one kept apart is free" 0 ""

new_tree
mkdir "$scratch/src/extra"
write extra/a.h '#include "low/a.h"'
write stray.h '#include "low/a.h"'
expect "an unknown folder and a file outside the rooms are reported" 1 \
'src/extra: not a room of layers.txt
src/stray.h: stands in no room'

new_tree
write low/a.h '#include "elsewhere/a.h"' '#include "../high/a.h"' '#include "./a.h"' '#include HEADER'
expect "includes that cannot be placed in a room are reported" 1 \
'src/low/a.h:1: "elsewhere/a.h" is in no room of layers.txt
src/low/a.h:2: "../high/a.h" is relative: write it from src/
src/low/a.h:3: "./a.h" is relative: write it from src/
src/low/a.h:4: names no file to include'

new_tree
write low/a.h '// #include "high/a.h"' 'const char* text = "#include \"high/a.h\"";'
expect "text that is no include is left alone" 0 ""

new_tree
write layers.txt low middle high low
expect "a room named twice is reported" 1 'src/layers.txt:4: low is named twice'

new_tree
write layers.txt
expect "without any room named, every folder is unknown" 1 \
'src/high: not a room of layers.txt
src/low: not a room of layers.txt
src/middle: not a room of layers.txt'

rm "$scratch/src/layers.txt"
expect "without the list there is nothing to check against" 2 \
"check_layers: $scratch/src has no layers.txt, the list of its rooms"

if ((failures > 0)); then
  echo "check_layers_test: $failures failed"
  exit 1
fi
