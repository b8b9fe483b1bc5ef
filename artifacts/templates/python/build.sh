# SPDX-License-Identifier: Apache-2.0
command -v python3 >/dev/null || { echo "python3 is missing: install Python 3.10 or newer with its venv module" >&2; exit 1; }
[ -x .tools/bin/componentize-py ] || { python3 -m venv .tools && .tools/bin/pip install -q componentize-py==0.25.1; }
.tools/bin/python -m py_compile @ROLE@.py
.tools/bin/componentize-py -q -d wit -w @ROLE@ componentize @ROLE@ -o @NAME@.wasm
