;; SPDX-License-Identifier: Apache-2.0
;; A component that exports and imports nothing.
(component)
