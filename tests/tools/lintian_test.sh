#!/bin/bash
# lintian_test.sh — lintian finds no error in the Debian packages of a folder, and no warning. That of the static library, 160 MB of
# objects that it looks into for minutes, is left out.
#
# lintian_test.sh FOLDER; exit status 77 where it is not installed.
set -euo pipefail
if ! command -v lintian >/dev/null; then
  echo "lintian is not installed here"
  exit 77
fi
# Who answers for packages is who builds them; those that go into no archive close none of its bugs. tenon-run has zlib inside, as it
# needs no libraries; ONNX Runtime looks for a plug-in by its file; and CPack calls ldconfig besides asking for it.
readonly accepted=maintscript-calls-ldconfig,bogus-mail-host,bogus-mail-host-in-debian-changelog,root-in-contact,initial-upload-closes-no-bugs,embedded-library,\
shared-library-lacks-version,package-name-doesnt-match-sonames
find "$1" -name "*.deb" ! -name "libtenon-dev_*" -exec lintian --allow-root --fail-on error,warning --suppress-tags "$accepted" {} +
