package main

import "unsafe"

//go:wasmimport murmur:task/task@0.1.0 request-input
func requestInput(prompt string, told unsafe.Pointer)

// Asks the person behind the task and waits for the answer. A task that has nobody to ask ends the call here.
func Ask(prompt string) string {
	var told span
	asking(func() { requestInput(prompt, unsafe.Pointer(&told)) })
	return told.text()
}
