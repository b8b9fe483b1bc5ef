// Settles two things between Go's run time and the host before any other package starts; a tool's author has nothing to do here.
//
// Memory: the WASI adapter takes a page at the first call of the host, and Go's allocator believes that nobody but itself
// grows the memory: it is told where the memory ends now. That has to come before it grows for the first time, so this
// package imports only syscall. Files: the work folder is granted as ".", where Go looks below "/".
package early

import (
	_ "syscall"
	_ "unsafe"
)

//go:linkname bloc runtime.bloc
var bloc uintptr

//go:linkname blocMax runtime.blocMax
var blocMax uintptr

type granted struct {
	fd   int32
	name string
}

//go:linkname folders syscall.preopens
var folders []granted

//go:linkname current syscall.cwd
var current string

func memoryEnd() uintptr

func init() {
	blocMax = memoryEnd()
	bloc = blocMax
	for i := range folders {
		if folders[i].name == "." {
			folders[i].name = "/"
		} else if folders[i].name[0] != '/' {
			folders[i].name = "/" + folders[i].name
		}
	}
	current = "/"
}
