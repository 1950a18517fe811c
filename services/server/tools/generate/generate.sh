#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Generates everything that follows from the contract: docs/api/openapi.yaml, docs/api/asyncapi.yaml, docs/api/schemas
# and docs/spec/actions.yaml. Run it from anywhere after changing one of them and commit the result.
#
#   generate.sh       Go for the server and the SDK, TypeScript for the web client
#   generate.sh go    Go alone
#
# The Go tools are built from tools/go.mod into .bin, the Node tools come from tools/contract/package-lock.json.
set -euo pipefail
server=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
root=$(cd "$server/../.." && pwd)
bin=$root/.bin
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

if [[ ! -x $bin/oapi-codegen ]]; then
  mkdir -p "$bin"
  [[ -e $bin/.gitignore ]] || echo '*' >"$bin/.gitignore"
  go build -C "$root/tools" -o "$bin/" github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen
fi

cd "$server"
mkdir -p "$root/apps/web/src/api/gen"
go run ./tools/actiongen -in "$root/docs/spec/actions.yaml" -out internal/kernel/authorize/actions.gen.go \
  -ts "$root/apps/web/src/api/gen/actions.ts"
go run ./tools/routegen -api "$root/docs/api" -actions "$root/docs/spec/actions.yaml" -out api/routes/routes.gen.go
go run ./tools/contractgen -api "$root/docs/api" -contract api/contract/contract.gen.json \
  -gateway "$tmp/gateway.json" -bundle "$tmp/bundle.json" -sdk "$tmp/sdk.json" \
  -go api/ws/tables.gen.go -ts "$root/apps/web/src/api/gen/gateway.ts"
go run ./tools/apiref -api "$root/docs/api" -actions "$root/docs/spec/actions.yaml" \
  -tokens "$root/design/tokens/color.json" -out internal/platform/webassets/reference
cp "$root/docs/api/openapi.yaml" "$tmp/openapi.yaml"
"$bin/oapi-codegen" -config api/rest/oapi-codegen.yaml "$root/docs/api/openapi.yaml"
"$bin/oapi-codegen" -config api/ws/oapi-codegen.yaml "$tmp/gateway.json"
(cd "$root/sdk/go" && "$bin/oapi-codegen" -config api/oapi-codegen.yaml "$tmp/sdk.json")

# The tool writes no licence line. It also leaves an optional list out when it is empty; an empty list and an absent one
# differ in a merge patch and in the sections of a snapshot, so only nil is left out.
for f in api/rest/rest.gen.go api/ws/types.gen.go "$root/sdk/go/api/api.gen.go"; do
  { printf '// SPDX-License-Identifier: Apache-2.0\n\n'; sed -E 's/^(\s+\w+\s+(\[\]|map\[)[^`]*`json:"\w+),omitempty"/\1,omitzero"/' "$f"; } >"$tmp/file.go"
  cat "$tmp/file.go" >"$f"
done

if [[ ${1:-all} == all ]]; then
  cd "$root/tools/contract"
  [[ -d node_modules ]] || npm ci --no-audit --no-fund
  npm run --silent generate -- "$tmp/bundle.json" --output "$tmp/schema.ts"
  { printf '// SPDX-License-Identifier: Apache-2.0\n'; cat "$tmp/schema.ts"; } >"$root/apps/web/src/api/gen/schema.ts"
fi
