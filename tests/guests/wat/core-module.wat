;; SPDX-License-Identifier: Apache-2.0
;; A core module: WebAssembly, but no component.
(module (func (export "run")))
