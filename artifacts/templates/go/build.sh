# SPDX-License-Identifier: Apache-2.0
command -v go >/dev/null || { echo "go is missing: install Go 1.24 or newer" >&2; exit 1; }
[ -x "${MURMUR_SOURCE:-}/scripts/build-guests" ] || { echo "MURMUR_SOURCE must name a checkout of murmur in which make build ran" >&2; exit 1; }
GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags='-s -w -checklinkname=0' -o core.wasm .
"$MURMUR_SOURCE/scripts/build-guests" --core core.wasm --output @NAME@.wasm
