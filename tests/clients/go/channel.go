package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
)

// localFailure is the error code for failures without one of Kafka's error codes.
const localFailure = -1000

// messageTooLarge is the code of MESSAGE_TOO_LARGE.
const messageTooLarge = 10

// answer is a response as a JSON object.
type answer map[string]any

// verb executes one request.
type verb func(*request) (answer, error)

// serve processes requests from stdin until it is closed. codeOf returns Kafka's error code, or localFailure.
func serve(verbs map[string]verb, codeOf func(error) int) {
	requests := bufio.NewReader(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	for {
		line, err := requests.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			err = answers.Encode(answered(line, verbs, codeOf))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func answered(line []byte, verbs map[string]verb, codeOf func(error) int) answer {
	asked := newRequest()
	if err := json.Unmarshal(line, asked); err != nil {
		return answer{"error": localFailure, "message": err.Error()}
	}
	do, known := verbs[asked.Do]
	if !known {
		return answer{"error": localFailure, "message": "no such verb: " + asked.Do}
	}
	found, err := do(asked)
	if err != nil {
		return answer{"error": codeOf(err), "message": fmt.Sprintf("%T: %v", err, err)}
	}
	return found
}

// place is the partition and offset of a record.
func place(partition int32, offset int64) []any {
	return []any{partition, offset}
}

// toText encodes bytes as Latin-1.
func toText(value []byte) *string {
	if value == nil {
		return nil
	}
	letters := make([]rune, len(value))
	for index, each := range value {
		letters[index] = rune(each)
	}
	text := string(letters)
	return &text
}

// toBytes decodes Latin-1. Null stays null.
func toBytes(text *string) []byte {
	if text == nil {
		return nil
	}
	value := make([]byte, 0, len(*text))
	for _, letter := range *text {
		value = append(value, byte(letter))
	}
	return value
}

// sortedNames returns the keys of a map; empty, not null, for an empty map.
func sortedNames[V any](found map[string]V) []string {
	names := slices.AppendSeq([]string{}, maps.Keys(found))
	slices.Sort(names)
	return names
}

// outcomes returns the response for records: the place of each, or the code of its error.
func outcomes(failures []error, code func(error) int, placed func(index int) []any) answer {
	results := []any{}
	for index, err := range failures {
		if err != nil {
			results = append(results, answer{"error": code(err)})
		} else {
			results = append(results, placed(index))
		}
	}
	return answer{"results": results}
}
