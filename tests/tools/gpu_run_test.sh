#!/bin/bash
# gpu_run_test.sh — bench/gpu/run with programs that print what a GPU would have them print.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
failures=0

# expect STATUS OUTPUT COMMAND... — of bench/gpu/run with the programs of the folder.
expect() {
  local status=0 output wanted="$1" text="$2" command="$3"
  shift 3
  output="$(PATH="$folder:$PATH" bench/gpu/run "$command" --tenon "$folder/tenon" --into "$folder/into" "$@" 2>&1)" || status=$?
  if [[ "$status" != "$wanted" || "$output" != "$text" ]]; then
    printf 'FAILED: %s\nexpected %s: %s\ngot %s: %s\n' "$command $*" "$wanted" "$text" "$status" "$output"
    failures=$((failures + 1))
  fi
}

# The status of a case is its name up to the first "_"; on the CPU all but "wrong_everywhere" pass.
cat >"$folder/tenon" <<'PROGRAM'
#!/usr/bin/env python3
import json, pathlib, sys
if sys.argv[1] == "run":
    sys.exit(0)
folders = [pathlib.Path(word) for word in sys.argv[2:sys.argv.index("--engine")]]
on_cpu = "reference" in sys.argv
def status(name):
    return "pass" if on_cpu and name != "wrong_everywhere" else name.split("_")[0]
nodes = {} if on_cpu else {"device_nodes": 2, "host_ops": {"if": 1, "nonzero": 2}}
print(json.dumps({"cases": [{"name": each.name, "status": status(each.name), "detail": "off", **nodes} for each in folders]}))
open(pathlib.Path(sys.argv[0]).parent / "calls", "a").write("called\n")
sys.exit(1)
PROGRAM
cat >"$folder/compute-sanitizer" <<'PROGRAM'
#!/bin/bash
case "$*" in
  *memcheck*bad*) printf '========= Invalid __global__ read of size 4 bytes\n========= ERROR SUMMARY: 2 errors\n'; exit 99 ;;
  *memcheck*) echo "========= ERROR SUMMARY: 0 errors" ;;
  *racecheck*) echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)" ;;
esac
PROGRAM
cat >"$folder/test_some" <<'PROGRAM'
#!/bin/bash
echo '{"testsuites": [{"name": "Cuda", "testsuite": [{"name": "A", "result": "COMPLETED"},
  {"name": "B", "result": "SKIPPED"}]}]}' >"${2#--gtest_output=json:}"
PROGRAM
chmod +x "$folder"/{tenon,compute-sanitizer,test_some}

mkdir -p "$folder"/cases/{pass_a,wrong_known,wrong_everywhere,error_here}
touch "$folder"/cases/{pass_a,wrong_known,wrong_everywhere,error_here}/model.onnx
printf '# why\n\nwrong wrong_known rounding\n' >"$folder/known"
ended="1 passed, 3 failed (2 wrong, 1 errors), 0 unsupported on cuda
8 nodes on the device, 12 on the host (nonzero 8, if 4)
error error_here: off (on the CPU: pass)
1 end in ways that known does not explain, but also on the CPU
1 differ from the CPU"
expect 1 "$ended" conformance "$folder/cases" --known "$folder/known" --jobs 1
expect 1 "$ended" conformance "$folder/cases" --known "$folder/known" --jobs 1  # nothing runs again
if [[ "$(wc -l <"$folder/calls")" != 2 ]]; then
  echo "FAILED: finished cases ran again"
  failures=$((failures + 1))
fi
mkdir "$folder/cases/pass_b"
touch "$folder/cases/pass_b/model.onnx"
expect 1 "$ended
1 were not run for lack of time: the same command goes on" conformance "$folder/cases" --known "$folder/known" --minutes 0

mkdir "$folder/models"
touch "$folder"/models/{good.v1.onnx,good.npz,bad.onnx,bad.npz,alone.onnx}
expect 1 "memcheck models/bad: ERROR SUMMARY: 2 errors: Invalid __global__ read of size 4 bytes
racecheck models/bad: ok
memcheck models/good.v1: ok
racecheck models/good.v1: ok
3 ok, 1 not, 0 not run" sanitize --models "$folder/models" --jobs 1
expect 1 "compute-sanitizer is for GPUs: --device cuda" sanitize --models "$folder/models" --device cpu

expect 0 "test_some: 1 passed, 0 failed, 1 skipped
  skipped: Cuda.B" tests --programs "$folder/test_some"

if ((failures > 0)); then
  exit 1
fi
echo "bench/gpu/run: all cases passed"
