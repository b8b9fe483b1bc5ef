# SPDX-License-Identifier: Apache-2.0
[ -x "${MURMUR_SOURCE:-}/scripts/build-guests" ] || { echo "MURMUR_SOURCE must name a checkout of murmur in which make build ran" >&2; exit 1; }
"$MURMUR_SOURCE/scripts/build-guests" --folder .
