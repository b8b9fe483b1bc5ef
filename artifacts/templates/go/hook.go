package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

var refused int

// Calls whose input holds a word of `config: {words: [...]}` are refused, and counted. One instance serves a session, so what is
// kept here lasts until its end. What it writes to os.Stderr, `mur run` shows on its own; lifecycle.go has the other events and answers, and what to ask for.
var hook = Hook{
	OnToolCall: func(event ToolCall) (Output, error) {
		var config struct{ Words []string }
		if err := json.Unmarshal([]byte(os.Getenv("MURMUR_ARTIFACT_CONFIG")), &config); err != nil {
			return Output{}, err
		}
		for _, word := range config.Words {
			// With an outcome the call is over: it can be looked at, no longer refused.
			if event.Outcome == nil && strings.Contains(event.Input, word) {
				refused++
				return Deny(fmt.Sprintf("no call may hold %s (refusal %d)", word, refused)), nil
			}
		}
		return Output{}, nil
	},
}
