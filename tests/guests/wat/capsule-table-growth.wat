;; SPDX-License-Identifier: Apache-2.0
;; Script capsule: grows its table by 10 000 elements at a time until that is refused, then traps.
(component
  (core module $m
    (table $t 1 funcref)
    (func (export "run")
      (loop $more
        (br_if $more (i32.ne (table.grow $t (ref.null func) (i32.const 10000)) (i32.const -1))))
      unreachable))
  (core instance $i (instantiate $m))
  (func $run (canon lift (core func $i "run")))
  (instance $face (export "run" (func $run)))
  (export "murmur:capsule/run@0.1.0" (instance $face)))
