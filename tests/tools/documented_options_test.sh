#!/bin/bash
# documented_options_test.sh — every command has a page in docs/ that names all its options. Those that all commands have, and
# commands about the shell itself, may stand in shell.md instead; those about training stand in training.md.
#
# documented_options_test.sh TENON
set -euo pipefail
tenon="$(realpath "$1")"
cd "$(dirname "${BASH_SOURCE[0]}")/../../docs"

commands="$("$tenon" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]\+\) .*/\1/p')"
[[ -n "$commands" ]] || { echo "tenon --help lists no commands"; exit 1; }
offences=0
for command in $commands; do
  pages=()
  [[ ! -f "$command.md" ]] || pages+=("$command.md")
  [[ "$command" != train* ]] || pages+=(training.md)
  [[ ! -f shell.md ]] || pages+=(shell.md)
  if ! grep -qw -e "tenon $command" /dev/null "${pages[@]}"; then
    echo "docs/$command.md: there is no page for tenon $command"
    offences=$((offences + 1))
    continue
  fi
  for option in $("$tenon" "$command" --help | grep '^  -' | grep -oE '(^  |, )--?[a-z0-9-]+' | tr -d ', ' | grep -vx -e -h -e --help); do
    if ! grep -qw -e "$option" "${pages[@]}"; then
      echo "docs/$command.md: tenon $command takes $option, which is not there"
      offences=$((offences + 1))
    fi
  done
done
((offences == 0))
