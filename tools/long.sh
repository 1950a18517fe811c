#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The long versions of tests that search for inputs.
#
#   long.sh fuzz SECONDS        every fuzz target of every Go module, one after the other
#   long.sh properties CHECKS   every package with property tests, with so many examples of each
#
# A finding is written below testdata of its package, where the ordinary tests run it again; commit it with the repair.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
modules="services/server services/agent sdk/go"
failed=

fuzz() {
  local module file name
  for module in $modules; do
    while IFS=: read -r file name; do
      echo "== $module/$(dirname "$file") $name"
      (cd "$module" && go test -run '^$' -fuzz "^$name\$" -fuzztime "${1}s" "./$(dirname "$file")") || failed="$failed $name"
    done < <(cd "$module" && grep -rn --include='*_test.go' -oE '^func Fuzz[A-Za-z0-9_]+' . | sed -E 's/:[0-9]+:func /:/' | sort)
  done
}

properties() {
  local module
  for module in $modules; do
    local packages
    packages=$(cd "$module" && grep -rl --include='*_test.go' 'pgregory.net/rapid' . | xargs -r -n1 dirname | sort -u)
    [[ -z $packages ]] && continue
    # Folders below a folder with its own flags would not know the flag; each package is named.
    # shellcheck disable=SC2086
    (cd "$module" && go test -count=1 -timeout 60m $packages -args -rapid.checks="$1") || failed="$failed $module"
  done
}

case ${1:-} in
  fuzz) fuzz "${2:-30}" ;;
  properties) properties "${2:-2000}" ;;
  *) sed -n '3,10p' "$0"; exit 2 ;;
esac
if [[ -n $failed ]]; then
  echo "found something:$failed" >&2
  exit 1
fi
