// The component's side of murmur:tool/run, and what it may ask of its host. Nothing here needs a change for its sake.

package main

import (
	"unsafe"
)

type Result struct {
	Status   Status
	Summary  string
	Data     string
	Metadata [][2]string
}

type Status uint8

const (
	StatusPassed Status = iota
	StatusFailed
	StatusError
)

func Passed(text string) Result { return Result{Status: StatusPassed, Data: text} }
func Failed(text string) Result { return Result{Status: StatusFailed, Data: text} }

// tool-result
type laidResult struct {
	status    uint32
	summary   option
	data      option
	dataPath  option
	truncated uint32
	metadata  span
}

//go:wasmexport murmur:tool/run@0.1.0#run
func run(dataPresent, dataAt, dataSize, pathPresent, pathAt, pathSize uint32) uint32 {
	input := option{dataPresent, span{dataAt, dataSize}}.text()
	option{pathPresent, span{pathAt, pathSize}}.text()
	if dataPresent == 0 {
		input = "{}"
	}
	var result Result
	working(func() { result = respond(input) })
	at := lend(uint32(unsafe.Sizeof(laidResult{})))
	out := laid[laidResult](at)
	out.status = uint32(result.Status)
	out.summary = optional(result.Summary)
	if result.Data != "" || result.Summary == "" {
		out.data = some(result.Data)
	}
	out.metadata = span{lend(uint32(len(result.Metadata)) * 16), uint32(len(result.Metadata))}
	for i, pair := range result.Metadata {
		*laid[[2]span](out.metadata.at + uint32(i)*16) = [2]span{given(pair[0]), given(pair[1])}
	}
	return at
}

// The host has read the result.
//
//go:wasmexport cabi_post_murmur:tool/run@0.1.0#run
func wasRead(at uint32) {
	clear(lent)
}

// Shows a piece of text as progress of the running task.
//
//go:wasmimport murmur:stream/events@0.1.0 emit-chunk
func Progress(text string)
