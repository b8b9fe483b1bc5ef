;; SPDX-License-Identifier: Apache-2.0
;; A script capsule of an interface version that was never served.
(component
  (core module $m (func (export "run")))
  (core instance $i (instantiate $m))
  (func $run (canon lift (core func $i "run")))
  (instance $face (export "run" (func $run)))
  (export "murmur:capsule/run@9.9.9" (instance $face)))
