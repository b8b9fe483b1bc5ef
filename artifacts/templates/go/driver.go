package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Asks a server that speaks Chat Completions, one answer at a time: the runtime's request is JSON, and so is the answer. The key is
// put into the request by the runtime, after it has left this component. Progress is for a server that streams.
func respond(input string) Result {
	told, err := ask(input)
	if err != nil {
		told = answer{StopReason: "error", Content: []block{}, Error: err.Error()}
	}
	text, err := json.Marshal(told)
	if err != nil {
		return Failed(err.Error())
	}
	return Passed(string(text))
}

// The runtime's side.

type request struct {
	Model     string            `json:"model"`
	MaxTokens int               `json:"max_tokens"`
	System    string            `json:"system"`
	Messages  []message         `json:"messages"`
	Tools     []json.RawMessage `json:"tools"`
}

type message struct {
	Role       string  `json:"role"`
	ToolCallID string  `json:"tool_call_id"`
	Content    []block `json:"content"`
}

type block struct {
	Type  string          `json:"type"`
	Text  string          `json:"text,omitempty"`
	ID    string          `json:"id,omitempty"`
	Name  string          `json:"name,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
}

type answer struct {
	StopReason string  `json:"stop_reason"`
	Content    []block `json:"content"`
	Error      string  `json:"error,omitempty"`
	Usage      *usage  `json:"usage,omitempty"`
}

type usage struct {
	Input  int `json:"input_tokens"`
	Output int `json:"output_tokens"`
}

// The server's side.

type chatRequest struct {
	Model     string        `json:"model"`
	MaxTokens int           `json:"max_tokens"`
	Messages  []chatMessage `json:"messages"`
	Tools     []chatTool    `json:"tools,omitempty"`
}

type chatMessage struct {
	Role       string     `json:"role"`
	Content    string     `json:"content"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type chatTool struct {
	Type     string          `json:"type"`
	Function json.RawMessage `json:"function"`
}

type chatAnswer struct {
	Choices []struct {
		Message      chatMessage `json:"message"`
		FinishReason string      `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	} `json:"usage"`
}

var stops = map[string]string{"tool_calls": "tool_call", "length": "max_tokens", "stop": "end_turn"}

func ask(input string) (told answer, err error) {
	var call request
	if err := json.Unmarshal([]byte(input), &call); err != nil {
		return told, err
	}
	body, err := json.Marshal(translated(call))
	if err != nil {
		return told, err
	}
	address := strings.TrimSuffix(os.Getenv("MURMUR_INFERENCE_ENDPOINT"), "/") + "/v1/chat/completions"
	response, err := Fetch("POST", address, map[string]string{"content-type": "application/json"}, body)
	if err != nil {
		return told, err
	}
	if response.Status != 200 {
		return told, fmt.Errorf("HTTP %d: %.500s", response.Status, response.Body)
	}
	var chat chatAnswer
	if err := json.Unmarshal(response.Body, &chat); err != nil {
		return told, err
	}
	if len(chat.Choices) == 0 {
		return told, fmt.Errorf("an answer without a choice")
	}
	told.StopReason, told.Content = "error", blocks(chat.Choices[0].Message)
	if stop, known := stops[chat.Choices[0].FinishReason]; known {
		told.StopReason = stop
	}
	if chat.Usage != nil {
		told.Usage = &usage{chat.Usage.Prompt, chat.Usage.Completion}
	}
	return told, nil
}

func translated(call request) chatRequest {
	made := chatRequest{Model: call.Model, MaxTokens: call.MaxTokens}
	if call.System != "" {
		made.Messages = append(made.Messages, chatMessage{Role: "system", Content: call.System})
	}
	for _, given := range call.Messages {
		told := chatMessage{Role: given.Role, ToolCallID: given.ToolCallID}
		var texts []string
		for _, each := range given.Content {
			switch each.Type {
			case "text":
				texts = append(texts, each.Text)
			case "tool_call":
				made := chatCall{ID: each.ID, Type: "function"}
				made.Function.Name, made.Function.Arguments = each.Name, string(each.Input)
				told.ToolCalls = append(told.ToolCalls, made)
			}
		}
		told.Content = strings.Join(texts, "\n")
		made.Messages = append(made.Messages, told)
	}
	for _, tool := range call.Tools {
		made.Tools = append(made.Tools, chatTool{"function", tool})
	}
	return made
}

func blocks(told chatMessage) []block {
	made := []block{}
	if told.Content != "" {
		made = append(made, block{Type: "text", Text: told.Content})
	}
	for _, call := range told.ToolCalls {
		made = append(made, block{Type: "tool_call", ID: call.ID, Name: call.Function.Name, Input: json.RawMessage(call.Function.Arguments)})
	}
	return made
}
