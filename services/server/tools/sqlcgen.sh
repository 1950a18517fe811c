#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Generates the query code of the named modules, or of every module that has queries:
#   services/server/tools/sqlcgen.sh chat messaging
# The schema is migrations/*.sql. When BOTHY_SQLC_STEPS is set ("0001 0005"), only steps
# whose names begin so are read.
set -eu
server=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
sqlc=${SQLC:-$server/../../.bin/sqlc}
[ $# -gt 0 ] || set -- $(sed -n 's/^  - name: //p' "$server/sqlc.yaml")

cd "$server"
schema=migrations
if [ -n "${BOTHY_SQLC_STEPS:-}" ]; then
	schema=
	for step in $BOTHY_SQLC_STEPS; do
		for file in migrations/"$step"*.sql; do schema="${schema:+$schema, }$file"; done
	done
	schema="[$schema]"
fi
for module in "$@"; do
	if ! ls "internal/$module/adapters/postgres/queries/"*.sql >/dev/null 2>&1; then
		echo "sqlcgen: $module has no queries" >&2
		continue
	fi
	config=.sqlc.$module.local.yaml
	trap 'rm -f "$config"' EXIT
	awk -v module="$module" -v schema="$schema" '
		/^  - name: / { keep = ($3 == module) }
		/^sql:/ { print; insql = 1; keep = 0; next }
		!insql || keep { if ($1 == "schema:") print "    schema: " schema; else print }
	' sqlc.yaml >"$config"
	"$sqlc" generate -f "$config"
	rm -f "$config"
done
