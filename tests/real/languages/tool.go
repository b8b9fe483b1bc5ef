// The conformance tool of tool.py, in Go.

package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

type order struct {
	Do, Text, Path, URL, Header string
}

func respond(input string) Result {
	var call struct{ Name string }
	if err := json.Unmarshal([]byte(input), &call); err != nil {
		return Failed(err.Error())
	}
	switch call.Name {
	case `"break"`:
		panic("broke on purpose")
	case `"fail"`:
		return Result{Status: StatusFailed, Summary: "a summary"}
	case `"meta"`:
		return Result{Data: "with metadata", Metadata: [][2]string{{"resource_id", "r-1"}, {"state_effect", "read"}}}
	}
	var orders []order
	if err := json.Unmarshal([]byte(call.Name), &orders); err != nil {
		return Failed(err.Error())
	}
	told := []string{}
	for _, each := range orders {
		if text, err := outcome(each); err != nil {
			told = append(told, "error: "+err.Error())
		} else {
			told = append(told, "ok: "+text)
		}
	}
	text, err := json.Marshal(told)
	if err != nil {
		return Failed(err.Error())
	}
	return Passed(string(text))
}

func outcome(o order) (string, error) {
	switch o.Do {
	case "log":
		fmt.Fprintln(os.Stderr, o.Text)
		return "logged", nil
	case "write":
		return "written", os.WriteFile(o.Path, []byte(o.Text), 0o644)
	case "read":
		text, err := os.ReadFile(o.Path)
		return string(text), err
	case "list":
		entries, err := os.ReadDir(o.Path)
		var names []string
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		return strings.Join(names, " "), err
	case "env":
		if value, known := os.LookupEnv(o.Text); known {
			return value, nil
		}
		return "unset", nil
	case "config":
		var config map[string]string
		err := json.Unmarshal([]byte(os.Getenv("MURMUR_ARTIFACT_CONFIG")), &config)
		return config[o.Text], err
	case "progress":
		Progress(o.Text)
		return "shown", nil
	case "ask":
		return Ask(o.Text), nil
	case "clock":
		if time.Now().Unix() > 1_600_000_000 {
			return "later", nil
		}
		return "earlier", nil
	case "random":
		one, other := make([]byte, 16), make([]byte, 16)
		rand.Read(one)
		rand.Read(other)
		if bytes.Equal(one, other) {
			return "repeats", nil
		}
		return "differs", nil
	case "get":
		answer, err := Fetch("GET", o.URL, nil, nil)
		if err != nil {
			return "", err
		}
		told := ""
		for _, header := range answer.Headers {
			if header[0] == "x-told" {
				told = header[1]
			}
		}
		return fmt.Sprintf("%d %s %s", answer.Status, told, answer.Body), nil
	case "post":
		answer, err := Fetch("POST", o.URL, map[string]string{"x-asked": o.Header}, []byte(o.Text))
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%d %s", answer.Status, answer.Body), nil
	}
	return "", fmt.Errorf("no order %s", o.Do)
}
