package main

import "encoding/json"

// Answers one call: input is its JSON text.
//
// What is written to os.Stderr goes into the tool's log; files of the work folder are opened by their relative names, where the
// capsule grants them. Fetch asks servers, Progress shows text of the running task, Ask asks the person behind it.
func respond(input string) Result {
	var call struct {
		Name *string `json:"name"`
	}
	if err := json.Unmarshal([]byte(input), &call); err != nil || call.Name == nil {
		return Failed("name: a string is needed")
	}
	return Passed("Hello, " + *call.Name + "!")
}
