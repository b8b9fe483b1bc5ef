package main

import (
	"fmt"
	"os"
	"strings"
)

// The conformance hook of hook.py, in Go.

func tell(format string, values ...any) (Output, error) {
	fmt.Fprintf(os.Stderr, "heard: "+format+"\n", values...)
	return Output{}, nil
}

func or(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func askAll() {
	tell("tokens %d %d", CountTokens("hello world"), CountTokens(""))
	input, err := TaskInput()
	tell("input %s %t", input, err == nil)
	output, err := TaskOutput()
	tell("output %s %t", output, err == nil)
	var roles []string
	cursor, total := "", uint32(0)
	for {
		page, next, count, err := Conversation(cursor, 1)
		if err != nil {
			tell("no page: %v", err)
			return
		}
		for _, message := range page {
			roles = append(roles, message.Role)
			if message.ID == "" || message.Inserted != InsertedNot {
				tell("odd message %+v", message)
			}
		}
		total, cursor = count, next
		if cursor == "" {
			break
		}
	}
	tell("conversation %d %s", total, strings.Join(roles, ","))
	_, _, _, err = Conversation("no cursor", 1)
	tell("refused %t", err != nil)
	text, err := Infer([]Message{{Role: "user", Content: "say it"}}, "be short", "")
	tell("inferred %s %t", text, err == nil)
}

var hook = Hook{
	OnStage: func(shellAllow []string) (Output, error) { return tell("stage %s", strings.Join(shellAllow, ",")) },
	OnSessionStart: func(e SessionStart) (Output, error) {
		tell("start %s %s %d", e.CapsuleName, e.CapsuleVersion, len(e.SessionID))
		_, err := TaskInput()
		return tell("no input: %v", err)
	},
	OnTaskStart: func(e TaskStart) (Output, error) { return tell("task %s %d", e.Source, e.InputBytes) },
	OnInference: func(e Inference) (Output, error) {
		return tell("turn %d %s %s %d", e.Turn, e.Decision, or(e.ToolName), e.OutputTokens)
	},
	OnToolCall: func(e ToolCall) (Output, error) {
		if e.Outcome == nil {
			return tell("call %s %d", e.ToolName, e.InputBytes)
		}
		return tell("called %s %s %t", e.ToolName, e.Outcome.Status, e.Outcome.OutputBytes > 0)
	},
	OnShell: func(e Shell) (Output, error) {
		if e.Outcome == nil {
			return tell("shell %s %s", e.Binary, strings.Join(e.Argv, "|"))
		}
		return tell("ran %s %d %d", e.Binary, e.Outcome.ExitCode, e.Outcome.StdoutBytes)
	},
	OnTaskEnd: func(e TaskEnd) (Output, error) {
		tell("end %s", e.ExitStatus)
		askAll()
		return Output{}, nil
	},
	OnSessionEnd: func(e SessionEnd) (Output, error) {
		return tell("over %d %d %d %s", e.TotalTurns, e.TotalToolCalls, e.TotalShellCalls, e.ExitStatus)
	},
}
