#!/bin/bash
# count_tests_test.sh — tools/count_tests counts each case once, and names what was skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

cat >"$folder/test_base.xml" <<'XML'
<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="5" failures="1" disabled="1" errors="0" time="0.007" name="AllTests">
  <testsuite name="Shell" tests="3" failures="1" disabled="0" skipped="1" errors="0" time="0.007">
    <testcase name="Works" status="run" result="completed" time="0.007" classname="Shell" />
    <testcase name="Fails" status="run" result="completed" time="0.007" classname="Shell">
      <failure message="a.cpp:1&#x0A;no" type=""><![CDATA[a.cpp:1
no]]></failure>
    </testcase>
    <testcase name="Fish" status="run" result="skipped" time="0.007" classname="Shell">
      <skipped message="a.cpp:54&#x0A;fish is not installed&#x0A;"><![CDATA[a.cpp:54
fish is not installed
]]></skipped>
    </testcase>
  </testsuite>
  <testsuite name="Other" tests="2" failures="0" disabled="1" skipped="0" errors="0" time="0.007">
    <testcase name="Works" status="run" result="completed" time="0.007" classname="Other" />
    <testcase name="DISABLED_One" status="notrun" result="suppressed" time="0.007" classname="Other" />
  </testsuite>
</testsuites>
XML
cat >"$folder/ctest.xml" <<'XML'
<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="Linux-c++" tests="4" failures="1" disabled="0" skipped="1" hostname="" time="0">
  <testcase name="base" classname="base" time="0.1" status="fail">
    <failure message=""/>
  </testcase>
  <testcase name="documentation/README.md" classname="documentation/README.md" time="0.1" status="run">
    <system-out></system-out>
  </testcase>
  <testcase name="install" classname="install" time="0.1" status="fail"/>
  <testcase name="static" classname="static" time="0.1" status="notrun">
    <skipped message="SKIP_RETURN_CODE=77"/>
  </testcase>
  <testcase name="compiler" classname="compiler" time="0" status="disabled">
    <skipped message=""/>
  </testcase>
</testsuite>
XML

expect() {
  if [[ "$1" != "$2" ]]; then
    printf 'count_tests_test.sh: expected\n%s\nbut got\n%s\n' "$1" "$2"
    exit 1
  fi
}
expect "3 2" "$(tools/count_tests "$folder")"
expect "Shell.Fish: fish is not installed
static: it cannot run here
compiler: this build has not what it needs" "$(tools/count_tests --skipped "$folder")"
rm "$folder/test_base.xml"  # as of a program that crashed: it counts as one that failed
expect "1 2" "$(tools/count_tests "$folder")"
