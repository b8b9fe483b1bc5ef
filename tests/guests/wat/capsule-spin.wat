;; SPDX-License-Identifier: Apache-2.0
;; Script capsule: a loop without an end and without a call.
(component
  (core module $m (func (export "run") (loop $more (br $more))))
  (core instance $i (instantiate $m))
  (func $run (canon lift (core func $i "run")))
  (instance $face (export "run" (func $run)))
  (export "murmur:capsule/run@0.1.0" (instance $face)))
