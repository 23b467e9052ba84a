#!/bin/bash
# documented_reasons_test.sh — docs/compiler.md explains every reason for which nodes are not fused. They are the texts of
# src/fusion/group_nodes.cpp, with … for what is put into them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

reasons="$(grep -v CHECK src/fusion/group_nodes.cpp | grep -oE '"[a-z][^"]* [^"]*"' | tr -d '"' | sed 's/{}/…/g' | sort -u)"
[[ -n "$reasons" ]] || { echo "src/fusion/group_nodes.cpp holds no reasons"; exit 1; }
offences=0
while IFS= read -r reason; do
  if ! grep -qF -e "$reason" docs/compiler.md; then
    echo "docs/compiler.md does not explain: $reason"
    offences=$((offences + 1))
  fi
done <<<"$reasons"
((offences == 0))
