# SPDX-License-Identifier: Apache-2.0
command -v npm >/dev/null || { echo "npm is missing: install Node.js 20 or newer" >&2; exit 1; }
[ -x node_modules/.bin/componentize-js ] || npm install --silent --no-audit --no-fund
node --check @ROLE@.js
node_modules/.bin/componentize-js @ROLE@.js --wit wit -n @ROLE@ --disable fetch-event -o @NAME@.wasm
