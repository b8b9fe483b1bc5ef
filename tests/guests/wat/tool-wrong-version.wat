;; SPDX-License-Identifier: Apache-2.0
;; Imports murmur:tool/run of a version that was never served.
(component
  (import "murmur:tool/run@9.9.9" (instance $future (export "run" (func))))
  (alias export $future "run" (func $run))
  (core func $lowered (canon lower (func $run)))
  (core module $m
    (import "future" "run" (func $run))
    (func (export "go") (call $run)))
  (core instance $i (instantiate $m (with "future" (instance (export "run" (func $lowered))))))
  (func (export "go") (canon lift (core func $i "go"))))
