// HTTP for a component: what the capsule's manifest lets through (network.allow, or a gateway). Sockets, and so net/http, lead
// nowhere.

package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unsafe"
)

type Response struct {
	Status  int
	Headers [][2]string
	Body    []byte
}

// One request and its whole answer, whatever its status. The error says why there is none: refused, no connection, a timeout.
func Fetch(method, address string, headers map[string]string, body []byte) (response *Response, err error) {
	asking(func() { response, err = fetch(method, address, headers, body) })
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, address, err)
	}
	return response, nil
}

var wasiMethods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}

func fetch(method, address string, headers map[string]string, body []byte) (*Response, error) {
	target, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	fields := wasiNewFields()
	for name, value := range headers {
		var told [2]uint8
		if wasiAppendField(fields, name, value, unsafe.Pointer(&told)); told[0] != 0 {
			return nil, fmt.Errorf("no header %q", name)
		}
	}
	request := wasiNewRequest(fields)
	number := uint32(len(wasiMethods))
	for i, known := range wasiMethods {
		if known == method {
			number = uint32(i)
		}
	}
	scheme := uint32(1)
	if target.Scheme == "http" {
		scheme = 0
	}
	if wasiSetMethod(request, number, method)|wasiSetScheme(request, 1, scheme, "")|wasiSetAuthority(request, 1, target.Host)|
		wasiSetPath(request, 1, target.RequestURI()) != 0 {
		wasiDropRequest(request)
		return nil, errors.New("no address")
	}
	var outgoing wasiResult
	wasiRequestBody(request, unsafe.Pointer(&outgoing))
	var handled [5]uint64
	if wasiHandle(request, 0, 0, unsafe.Pointer(&handled)); wasiFirst(&handled[0]) != 0 {
		return nil, wasiFailure(&handled[1])
	}
	coming := wasiFirst(&handled[1])
	defer wasiDropFuture(coming)
	if err := wasiSend(outgoing.handle, body); err != nil {
		return nil, err
	}
	wait := wasiSubscribe(coming)
	wasiBlock(wait)
	wasiDropPollable(wait)
	// option<result<result<incoming-response, error-code>>>: a tag each, eight bytes apart.
	var head [7]uint64
	wasiGet(coming, unsafe.Pointer(&head))
	if wasiTag(&head[0]) == 0 || wasiTag(&head[1]) != 0 {
		return nil, errors.New("no answer came")
	}
	if wasiTag(&head[2]) != 0 {
		return nil, wasiFailure(&head[3])
	}
	return wasiReceive(wasiFirst(&head[3]))
}

func wasiSend(outgoing uint32, body []byte) error {
	var stream wasiResult
	wasiBodyWrite(outgoing, unsafe.Pointer(&stream))
	for len(body) > 0 {
		piece := body[:min(len(body), 4096)]
		var told [3]uint32
		if wasiWrite(stream.handle, unsafe.SliceData(piece), uint32(len(piece)), unsafe.Pointer(&told)); told[0]&255 != 0 {
			wasiDropOutput(stream.handle)
			return errors.New("the connection ended while the request was sent")
		}
		body = body[len(piece):]
	}
	wasiDropOutput(stream.handle)
	var finished [5]uint64
	if wasiFinish(outgoing, 0, 0, unsafe.Pointer(&finished)); wasiTag(&finished[0]) != 0 {
		return wasiFailure(&finished[1])
	}
	return nil
}

func wasiReceive(response uint32) (*Response, error) {
	made := &Response{Status: int(wasiStatus(response)), Headers: wasiHeadersOf(response)}
	var incoming, stream wasiResult
	wasiConsume(response, unsafe.Pointer(&incoming))
	wasiBodyStream(incoming.handle, unsafe.Pointer(&stream))
	defer func() {
		wasiDropInput(stream.handle)
		wasiDropIncoming(incoming.handle)
		wasiDropResponse(response)
	}()
	for {
		// A list, or why there is none: the failure (0) of an error, or the end (1).
		var told [3]uint32
		wasiRead(stream.handle, 65536, unsafe.Pointer(&told))
		if told[0]&255 == 0 {
			made.Body = append(made.Body, span{told[1], told[2]}.text()...)
		} else if told[1]&255 == 0 {
			return nil, errors.New("the connection ended inside of the answer")
		} else {
			return made, nil
		}
	}
}

func wasiHeadersOf(response uint32) [][2]string {
	fields := wasiHeaders(response)
	defer wasiDropFields(fields)
	var list span
	wasiEntries(fields, unsafe.Pointer(&list))
	defer delete(lent, list.at)
	var made [][2]string
	for i := range list.size {
		pair := *laid[[2]span](list.at + i*16)
		made = append(made, [2]string{strings.ToLower(pair[0].text()), pair[1].text()})
	}
	return made
}

// result<a handle>
type wasiResult struct {
	tag    uint32
	handle uint32
}

func wasiFirst(at *uint64) uint32 { return uint32(*at) }
func wasiTag(at *uint64) uint8    { return uint8(*at) }

var wasiFailures = []string{"DNS timeout", "DNS error", "destination not found", "destination unavailable", "destination IP prohibited",
	"destination IP unroutable", "connection refused", "connection terminated", "connection timeout", "connection read timeout",
	"connection write timeout", "connection limit reached", "TLS protocol error", "TLS certificate error", "TLS alert received",
	"HTTP request denied", "HTTP request length required", "HTTP request body size", "HTTP request method invalid",
	"HTTP request URI invalid", "HTTP request URI too long", "HTTP request header section size", "HTTP request header size",
	"HTTP request trailer section size", "HTTP request trailer size", "HTTP response incomplete", "HTTP response header section size",
	"HTTP response header size", "HTTP response body size", "HTTP response trailer section size", "HTTP response trailer size",
	"HTTP response transfer coding", "HTTP response content coding", "HTTP response timeout", "HTTP upgrade failed",
	"HTTP protocol error", "loop detected", "configuration error", "internal error"}

func wasiFailure(at *uint64) error {
	return errors.New(wasiFailures[min(int(wasiTag(at)), len(wasiFailures)-1)])
}

//go:wasmimport wasi:http/types@0.2.1 [constructor]fields
func wasiNewFields() uint32

//go:wasmimport wasi:http/types@0.2.1 [method]fields.append
func wasiAppendField(fields uint32, name, value string, told unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.1 [method]fields.entries
func wasiEntries(fields uint32, told unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.1 [resource-drop]fields
func wasiDropFields(fields uint32)

//go:wasmimport wasi:http/types@0.2.1 [constructor]outgoing-request
func wasiNewRequest(fields uint32) uint32

//go:wasmimport wasi:http/types@0.2.1 [resource-drop]outgoing-request
func wasiDropRequest(request uint32)

//go:wasmimport wasi:http/types@0.2.1 [method]outgoing-request.set-method
func wasiSetMethod(request, number uint32, other string) uint32

//go:wasmimport wasi:http/types@0.2.1 [method]outgoing-request.set-scheme
func wasiSetScheme(request, present, scheme uint32, other string) uint32

//go:wasmimport wasi:http/types@0.2.1 [method]outgoing-request.set-authority
func wasiSetAuthority(request, present uint32, authority string) uint32

//go:wasmimport wasi:http/types@0.2.1 [method]outgoing-request.set-path-with-query
func wasiSetPath(request, present uint32, path string) uint32

//go:wasmimport wasi:http/types@0.2.1 [method]outgoing-request.body
func wasiRequestBody(request uint32, told unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.1 [method]outgoing-body.write
func wasiBodyWrite(body uint32, told unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.1 [static]outgoing-body.finish
func wasiFinish(body, present, trailers uint32, told unsafe.Pointer)

//go:wasmimport wasi:http/outgoing-handler@0.2.1 handle
func wasiHandle(request, present, options uint32, told unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.1 [method]future-incoming-response.subscribe
func wasiSubscribe(coming uint32) uint32

//go:wasmimport wasi:http/types@0.2.1 [method]future-incoming-response.get
func wasiGet(coming uint32, told unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.1 [resource-drop]future-incoming-response
func wasiDropFuture(coming uint32)

//go:wasmimport wasi:http/types@0.2.1 [method]incoming-response.status
func wasiStatus(response uint32) uint32

//go:wasmimport wasi:http/types@0.2.1 [method]incoming-response.headers
func wasiHeaders(response uint32) uint32

//go:wasmimport wasi:http/types@0.2.1 [method]incoming-response.consume
func wasiConsume(response uint32, told unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.1 [resource-drop]incoming-response
func wasiDropResponse(response uint32)

//go:wasmimport wasi:http/types@0.2.1 [method]incoming-body.stream
func wasiBodyStream(body uint32, told unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.1 [resource-drop]incoming-body
func wasiDropIncoming(body uint32)

//go:wasmimport wasi:io/poll@0.2.1 [method]pollable.block
func wasiBlock(pollable uint32)

//go:wasmimport wasi:io/poll@0.2.1 [resource-drop]pollable
func wasiDropPollable(pollable uint32)

//go:wasmimport wasi:io/streams@0.2.1 [method]input-stream.blocking-read
func wasiRead(stream uint32, most uint64, told unsafe.Pointer)

//go:wasmimport wasi:io/streams@0.2.1 [resource-drop]input-stream
func wasiDropInput(stream uint32)

//go:wasmimport wasi:io/streams@0.2.1 [method]output-stream.blocking-write-and-flush
func wasiWrite(stream uint32, piece *byte, size uint32, told unsafe.Pointer)

//go:wasmimport wasi:io/streams@0.2.1 [resource-drop]output-stream
func wasiDropOutput(stream uint32)
