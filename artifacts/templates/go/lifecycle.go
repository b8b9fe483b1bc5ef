// The component's side of murmur:hook/lifecycle, and what it may ask of its host. Nothing here needs a change for its sake.

package main

import (
	"errors"
	"unsafe"
)

// What a hook is written with: the functions of the events it wants.
type Hook struct {
	OnStage        func(shellAllow []string) (Output, error)
	OnSessionStart func(SessionStart) (Output, error)
	OnTaskStart    func(TaskStart) (Output, error)
	OnInference    func(Inference) (Output, error)
	OnToolCall     func(ToolCall) (Output, error)
	OnShell        func(Shell) (Output, error)
	OnCompaction   func(Compaction) (Output, error)
	OnTaskEnd      func(TaskEnd) (Output, error)
	OnSessionEnd   func(SessionEnd) (Output, error)
}

type Message struct {
	Role, Content, ID, SourceID string
	Inserted                    Insertion
}

// By which answer of a hook a message came into the conversation.
type Insertion uint8

const (
	InsertedNot Insertion = iota
	InsertedByReplace
	InsertedBySeed
)

type SessionStart struct {
	CapsuleName, CapsuleVersion, SessionID, Model string
	Capabilities                                  []string
}

// A zero means "not computed".
type TaskStart struct {
	TaskID, ContextID, Source                            string
	InputBytes, BudgetTokens, ContextWindow, PriorTokens uint64
}

type Inference struct {
	Turn                                        uint32
	InputTokens, OutputTokens                   uint64
	Decision, ToolName, Prompt, Answered, Tools string
}

type ToolCall struct {
	Turn       uint32
	ToolName   string
	InputBytes uint64
	Input      string
	Outcome    *ToolOutcome // nil: the call has not run, and may be denied
}

type ToolOutcome struct {
	OutputBytes, DurationMs uint64
	Status                  string
}

type Shell struct {
	Turn            uint32
	Binary, Command string // the command is for people, and cut: decide by the members below
	Argv            []string
	Script, Recipe  string
	Outcome         *ShellOutcome // nil: it has not run, and may be denied
}

type ShellOutcome struct {
	ExitCode                             int32
	Stdout, Stderr                       string
	StdoutBytes, StderrBytes, DurationMs uint64
}

type Compaction struct {
	Messages            []Message
	SessionTokens       uint64
	Threshold           float64
	Model, SystemPrompt string
}

type TaskEnd struct {
	TaskID, ExitStatus string
}

type SessionEnd struct {
	TotalTurns                          uint32
	TotalInputTokens, TotalOutputTokens uint64
	TotalToolCalls, TotalShellCalls     uint32
	DurationMs                          uint64
	ExitStatus                          string
}

// What an event is answered with; the zero value is "nothing".
type Output struct {
	tag      uint8
	text     string
	messages []Message
}

func ReplaceContext(messages []Message) Output { return Output{tag: 1, messages: messages} }
func Artifact(text string) Output              { return Output{tag: 3, text: text} }
func ReopenTask(text string) Output            { return Output{tag: 4, text: text} }
func SeedContext(messages []Message) Output    { return Output{tag: 5, messages: messages} }
func Deny(reason string) Output                { return Output{tag: 6, text: reason} }

// write-manifests: of a program, what the model is told of it.
func WriteManifests(manifests map[string]string) Output {
	made := Output{tag: 2}
	for name, content := range manifests {
		made.messages = append(made.messages, Message{Role: name, Content: content})
	}
	return made
}

// --- The host's questions of a hook ---

type laidMessage struct {
	role, content   span
	id, source      option
	insertedPresent uint8
	insertedBy      uint8
}

func (s span) texts() []string {
	defer delete(lent, s.at)
	var made []string
	for i := range s.size {
		made = append(made, laid[span](s.at+i*8).text())
	}
	return made
}

func (s span) taken() []Message {
	defer delete(lent, s.at)
	var made []Message
	for i := range s.size {
		m := laid[laidMessage](s.at + i*uint32(unsafe.Sizeof(laidMessage{})))
		made = append(made, Message{m.role.text(), m.content.text(), m.id.text(), m.source.text(),
			Insertion(m.insertedPresent * (m.insertedBy + 1))})
	}
	return made
}

func handed(messages []Message) span {
	size := uint32(unsafe.Sizeof(laidMessage{}))
	list := span{lend(size * uint32(len(messages))), uint32(len(messages))}
	for i, m := range messages {
		*laid[laidMessage](list.at + uint32(i)*size) =
			laidMessage{given(m.Role), given(m.Content), optional(m.ID), optional(m.SourceID),
				uint8(min(m.Inserted, 1)), uint8(max(m.Inserted, 1) - 1)}
	}
	return list
}

// result<hook-output, string>
type laidOutput struct {
	failed uint32
	// Of a failure its text lies here, of an answer its tag and then what it holds.
	words [3]uint32
}

func answered[E any](how func(E) (Output, error), event E) uint32 {
	at := lend(uint32(unsafe.Sizeof(laidOutput{})))
	out := laid[laidOutput](at)
	if how == nil {
		return at
	}
	var told Output
	var err error
	working(func() { told, err = how(event) })
	if err != nil {
		text := given(err.Error())
		out.failed, out.words = 1, [3]uint32{text.at, text.size, 0}
		return at
	}
	var held span
	switch told.tag {
	case 1, 5:
		held = handed(told.messages)
	case 2:
		held = span{lend(uint32(len(told.messages)) * 16), uint32(len(told.messages))}
		for i, m := range told.messages {
			*laid[[2]span](held.at + uint32(i)*16) = [2]span{given(m.Role), given(m.Content)}
		}
	case 3, 4, 6:
		held = given(told.text)
	}
	out.words = [3]uint32{uint32(told.tag), held.at, held.size}
	return at
}

//go:wasmexport murmur:hook/lifecycle@0.9.0#on-stage
func onStage(at, size uint32) uint32 {
	return answered(hook.OnStage, span{at, size}.texts())
}

//go:wasmexport murmur:hook/lifecycle@0.9.0#on-session-start
func onSessionStart(name, nameSize, version, versionSize, id, idSize, model, modelSize, list, listSize uint32) uint32 {
	return answered(hook.OnSessionStart, SessionStart{span{name, nameSize}.text(), span{version, versionSize}.text(),
		span{id, idSize}.text(), span{model, modelSize}.text(), span{list, listSize}.texts()})
}

//go:wasmexport murmur:hook/lifecycle@0.9.0#on-task-start
func onTaskStart(id, idSize, context, contextSize, source, sourceSize uint32, input, budget, window, prior uint64) uint32 {
	return answered(hook.OnTaskStart, TaskStart{span{id, idSize}.text(), span{context, contextSize}.text(),
		span{source, sourceSize}.text(), input, budget, window, prior})
}

//go:wasmexport murmur:hook/lifecycle@0.9.0#on-inference
func onInference(at uint32) uint32 {
	defer delete(lent, at)
	e := laid[struct {
		turn                    uint32
		input, output           uint64
		decision                span
		tool, prompt, out, list option
	}](at)
	return answered(hook.OnInference, Inference{e.turn, e.input, e.output, e.decision.text(), e.tool.text(), e.prompt.text(),
		e.out.text(), e.list.text()})
}

//go:wasmexport murmur:hook/lifecycle@0.9.0#on-tool-call
func onToolCall(turn, name, nameSize uint32, bytes uint64, input, inputSize, present uint32, output, duration uint64,
	status, statusSize uint32) uint32 {
	event := ToolCall{turn, span{name, nameSize}.text(), bytes, span{input, inputSize}.text(), nil}
	if present != 0 {
		event.Outcome = &ToolOutcome{output, duration, span{status, statusSize}.text()}
	}
	return answered(hook.OnToolCall, event)
}

//go:wasmexport murmur:hook/lifecycle@0.9.0#on-shell
func onShell(at uint32) uint32 {
	defer delete(lent, at)
	e := laid[struct {
		turn            uint32
		binary, command span
		argv            span
		script, recipe  option
		present         uint64
		exit            int32
		stdout, stderr  span
		out, err, took  uint64
	}](at)
	event := Shell{e.turn, e.binary.text(), e.command.text(), e.argv.texts(), e.script.text(), e.recipe.text(), nil}
	if e.present != 0 {
		event.Outcome = &ShellOutcome{e.exit, e.stdout.text(), e.stderr.text(), e.out, e.err, e.took}
	}
	return answered(hook.OnShell, event)
}

//go:wasmexport murmur:hook/lifecycle@0.9.0#on-compaction
func onCompaction(list, listSize uint32, tokens uint64, threshold float64, hasModel, model, modelSize, hasSystem, system,
	systemSize uint32) uint32 {
	return answered(hook.OnCompaction, Compaction{span{list, listSize}.taken(), tokens, threshold,
		option{hasModel, span{model, modelSize}}.text(), option{hasSystem, span{system, systemSize}}.text()})
}

//go:wasmexport murmur:hook/lifecycle@0.9.0#on-task-end
func onTaskEnd(id, idSize, status, statusSize uint32) uint32 {
	return answered(hook.OnTaskEnd, TaskEnd{span{id, idSize}.text(), span{status, statusSize}.text()})
}

//go:wasmexport murmur:hook/lifecycle@0.9.0#on-session-end
func onSessionEnd(turns uint32, input, output uint64, tools, shells uint32, took uint64, status, statusSize uint32) uint32 {
	return answered(hook.OnSessionEnd, SessionEnd{turns, input, output, tools, shells, took, span{status, statusSize}.text()})
}

// The host has read an answer.
//
//go:wasmexport cabi_post_murmur:hook/lifecycle@0.9.0#on-stage
func readStage(uint32) { clear(lent) }

//go:wasmexport cabi_post_murmur:hook/lifecycle@0.9.0#on-session-start
func readSessionStart(uint32) { clear(lent) }

//go:wasmexport cabi_post_murmur:hook/lifecycle@0.9.0#on-task-start
func readTaskStart(uint32) { clear(lent) }

//go:wasmexport cabi_post_murmur:hook/lifecycle@0.9.0#on-inference
func readInference(uint32) { clear(lent) }

//go:wasmexport cabi_post_murmur:hook/lifecycle@0.9.0#on-tool-call
func readToolCall(uint32) { clear(lent) }

//go:wasmexport cabi_post_murmur:hook/lifecycle@0.9.0#on-shell
func readShell(uint32) { clear(lent) }

//go:wasmexport cabi_post_murmur:hook/lifecycle@0.9.0#on-compaction
func readCompaction(uint32) { clear(lent) }

//go:wasmexport cabi_post_murmur:hook/lifecycle@0.9.0#on-task-end
func readTaskEnd(uint32) { clear(lent) }

//go:wasmexport cabi_post_murmur:hook/lifecycle@0.9.0#on-session-end
func readSessionEnd(uint32) { clear(lent) }

// --- What a hook may ask of its host ---

// The host's own count of a text, in cl100k_base tokens.
//
//go:wasmimport murmur:runtime/tokens@0.4.0 count
func CountTokens(text string) uint64

//go:wasmimport murmur:runtime/inference@0.4.0 run-inference
func runInference(messages, count, hasSystem uint32, system string, hasModel uint32, model string, told unsafe.Pointer)

//go:wasmimport murmur:task-io/read@0.1.0 read-input
func readInput(form uint32, offset, most uint64, told unsafe.Pointer)

//go:wasmimport murmur:task-io/read@0.1.0 read-output
func readOutput(offset, most uint64, told unsafe.Pointer)

// One completion through the session's own driver, without tools; it is paid for like a turn. No model: the session's first choice.
func Infer(messages []Message, system, model string) (string, error) {
	var told struct {
		failed  uint64
		text    span
		model   span
		in, out uint64
	}
	list := handed(messages)
	asking(func() {
		runInference(list.at, list.size, present(system), system, present(model), model, unsafe.Pointer(&told))
	})
	if uint8(told.failed) != 0 {
		return "", errors.New(told.text.text())
	}
	told.model.text()
	return told.text.text(), nil
}

//go:wasmimport murmur:conversation/read@0.2.0 read-messages
func readMessages(hasCursor uint32, cursor string, limit uint32, told unsafe.Pointer)

// A page of the conversation's record, newest first, and how many messages that has (capabilities.conversation.read). An empty
// cursor asks for the newest; an empty next says that it was the end of the record.
func Conversation(cursor string, limit uint32) (page []Message, next string, total uint32, err error) {
	var told struct {
		failed   uint32
		messages span
		next     option
		total    uint32
	}
	asking(func() { readMessages(present(cursor), cursor, limit, unsafe.Pointer(&told)) })
	if told.failed&255 != 0 {
		return nil, "", 0, errors.New(told.messages.text())
	}
	return told.messages.taken(), told.next.text(), told.total, nil
}

func present(text string) uint32 {
	if text == "" {
		return 0
	}
	return 1
}

// The task's text and what it has answered so far, at most 1 MiB of each (capabilities.task_io.read).
func TaskInput() (string, error) {
	var told [3]uint32
	asking(func() { readInput(0, 0, 1<<20, unsafe.Pointer(&told)) })
	return piece(told)
}

func TaskOutput() (string, error) {
	var told [3]uint32
	asking(func() { readOutput(0, 1<<20, unsafe.Pointer(&told)) })
	return piece(told)
}

func piece(told [3]uint32) (string, error) {
	if told[0]&255 != 0 {
		return "", errors.New([]string{"not-granted", "no-task", "no-output", "out-of-range"}[told[1]&3])
	}
	return span{told[1], told[2]}.text(), nil
}
