;; SPDX-License-Identifier: Apache-2.0
;; Script capsule: traps as its first act.
(component
  (core module $m (func (export "run") unreachable))
  (core instance $i (instantiate $m))
  (func $run (canon lift (core func $i "run")))
  (instance $face (export "run" (func $run)))
  (export "murmur:capsule/run@0.1.0" (instance $face)))
