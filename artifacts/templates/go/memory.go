// What passes between the component and its host, laid out in memory by the canonical ABI: the standard Go compiler has no
// generator of bindings. Nothing here needs a change for a component's sake.

package main

import (
	"runtime"
	"runtime/debug"
	"unsafe"

	_ "a.guest/early"
)

// While the host lays something in our memory nothing may be asked of it, not even the time; Go's collector asks for that. So the
// collector runs while the component's own code does, and not while the host is asked for what it answers in memory.
func init() { debug.SetGCPercent(-1) }

// The component's own code: a call, an event.
func working(do func()) {
	debug.SetGCPercent(100)
	do()
	settle()
}

// A question to the host, or several.
func asking(do func()) {
	settle()
	do()
	debug.SetGCPercent(100)
}

// Ends a collection that has begun, and lets no other begin.
func settle() {
	debug.SetGCPercent(-1)
	runtime.GC()
}

// What the host has asked for or still reads: kept here, since the collector sees no pointer of it.
var lent = map[uint32][]uint64{}

func lend(size uint32) uint32 {
	room := make([]uint64, size/8+1)
	at := uint32(uintptr(unsafe.Pointer(&room[0])))
	lent[at] = room
	return at
}

// The canonical ABI's allocators, for what the host passes in and for what it answers. Every alignment it asks for is at most 8.
//
//go:wasmexport cabi_export_realloc
func hostPassesIn(old, oldSize, align, size uint32) uint32 {
	return relend(old, oldSize, size)
}

//go:wasmexport cabi_import_realloc
func hostAnswers(old, oldSize, align, size uint32) uint32 {
	return relend(old, oldSize, size)
}

func relend(old, oldSize, size uint32) uint32 {
	at := lend(size)
	if old != 0 {
		copy(memory(at, size), memory(old, min(oldSize, size)))
		delete(lent, old)
	}
	return at
}

func memory(at, size uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(uintptr(at))), size)
}

// What lies at an address, as the canonical ABI lays it out.
func laid[T any](at uint32) *T {
	return (*T)(unsafe.Pointer(uintptr(at)))
}

// A string or a list: where it is and how many.
type span struct {
	at   uint32
	size uint32
}

// A copy of a text the host has laid in our memory, which is then given back.
func (s span) text() string {
	defer delete(lent, s.at)
	return string(memory(s.at, s.size))
}

func given(text string) span {
	at := lend(uint32(len(text)))
	copy(memory(at, uint32(len(text))), text)
	return span{at, uint32(len(text))}
}

// option<string>
type option struct {
	present uint32
	span    span
}

func (o option) text() string {
	if o.present == 0 {
		return ""
	}
	return o.span.text()
}

func some(text string) option {
	return option{1, given(text)}
}

// An empty text is none.
func optional(text string) option {
	if text == "" {
		return option{}
	}
	return some(text)
}

func main() {}
