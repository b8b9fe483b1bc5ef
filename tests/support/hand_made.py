# SPDX-License-Identifier: Apache-2.0
#
# Components no compiler would make: valid, and made to cost whoever loads, links or runs them. Each as text for wasm-tools.


def script(core, more=""):
    """A script capsule of one core module; `more` stands beside it."""
    return f"""(component
  {more}
  (core module $m {core})
  (core instance $i (instantiate $m))
  (func $run (canon lift (core func $i "run")))
  (instance $face (export "run" (func $run)))
  (export "murmur:capsule/run@0.1.0" (instance $face)))
"""


RUNS = '(func (export "run"))'


def leb(number):
    out = bytearray()
    while True:
        number, low = number >> 7, number & 0x7f
        out.append(low | (0x80 if number else 0))
        if not number:
            return bytes(out)


def nested_components(depth):
    """As bytes: the text's own parser stops earlier."""
    head = b"\0asm\x0d\0\1\0"
    inner = head
    for _ in range(depth):
        inner = head + b"\x04" + leb(len(inner)) + inner
    return inner


def nested_types(depth):
    """A list of a list of a list; an instance's signature may hold it."""
    lines = ["(type $t0 (list u8))"] + [f"(type $t{i} (list $t{i - 1}))" for i in range(1, depth)]
    return script(RUNS, "\n".join(lines))


def wide_record(fields):
    return script(RUNS, "(type $r (record " + " ".join(f'(field "f{i}" string)' for i in range(fields)) + "))")


def doubling_tuples(depth):
    """Each type is two of the one before: a small text whose flattened form has 2^depth members."""
    lines = ["(type $t0 (tuple u64 u64))"] + [f"(type $t{i} (tuple $t{i - 1} $t{i - 1}))" for i in range(1, depth)]
    return script(RUNS, "\n".join(lines))


COMPONENTS = {
    # what loading or linking may refuse, or not
    "nested components": nested_components(1000),
    "nested types": nested_types(150),
    "a record of 9000 fields": wide_record(9000),
    "types that double": doubling_tuples(60),
    "1000 instances of a module": script(RUNS, '(core module $n (memory 1) (func (export "f")))\n' + "\n".join(
        "(core instance (instantiate $n))" for _ in range(1000))),
    "100 memories of the largest size": script("(memory 65536) " * 100 + RUNS),
    "one memory of the largest size": script("(memory 65536) " + RUNS),
    "100 tables of the largest size": script("(table 10000000 funcref) " * 100 + RUNS),
    "a memory of 64-bit addresses": script("(memory i64 0x1000000000000) " + RUNS),
    "a start without an end": script("(func $s (loop $l (br $l))) (start $s) " + RUNS),
    "a start that traps": script("(func $s unreachable) (start $s) " + RUNS),
    "10000 resource types": script(RUNS, "\n".join(f"(type $r{i} (resource (rep i32)))" for i in range(10000))),
    "5000 functions": script(RUNS + "(func)" * 5000),
    "a function of 50000 locals": script(f'(func (export "run") (local {"i64 " * 49999}))'),
    "a function too long for the compiler to like": script(
        '(func (export "run") (local i32) ' + "(local.set 0 (i32.add (local.get 0) (i32.const 1))) " * 60000 + ")"),
    "200 nested blocks in 200 functions": script("".join(f"(func {'(block ' * 200}{')' * 200})" for _ in range(200)) + RUNS),
    # what running may end
    "recursion without an end": script('(func $f (export "run") (call $f))'),
    "recursion with large frames": script('(func $f (param v128 v128 v128 v128) (local ' + "v128 " * 400 + ') local.get 0 local.get 1 local.get 2 '
                                          'local.get 3 call $f) (func (export "run") v128.const i64x2 0 0 v128.const i64x2 0 0 '
                                          "v128.const i64x2 0 0 v128.const i64x2 0 0 call $f)"),
    "tail recursion without an end": script('(func $f (export "run") (return_call $f))'),
    "handles without an end": """(component
  (type $r (resource (rep i32)))
  (core func $new (canon resource.new $r))
  (core module $m
    (import "h" "new" (func $new (param i32) (result i32)))
    (func (export "run") (loop $l (drop (call $new (i32.const 1))) (br $l))))
  (core instance $i (instantiate $m (with "h" (instance (export "new" (func $new))))))
  (func $run (canon lift (core func $i "run")))
  (instance $face (export "run" (func $run)))
  (export "murmur:capsule/run@0.1.0" (instance $face)))
""",
}
