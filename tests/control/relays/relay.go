// Sends the HTTP request in each line of the input, as JSON [method, url, body], and prints [status, response].
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var method, url string
		var body json.RawMessage
		check(json.Unmarshal(lines.Bytes(), &[]any{&method, &url, &body}))
		if string(body) == "null" {
			body = nil
		}
		request, err := http.NewRequest(method, url, bytes.NewReader(body))
		check(err)
		answer, err := http.DefaultClient.Do(request)
		check(err)
		text, err := io.ReadAll(answer.Body)
		check(err)
		answer.Body.Close()
		if len(text) == 0 {
			text = []byte("null")
		}
		fmt.Printf("[%d, %s]\n", answer.StatusCode, bytes.ReplaceAll(text, []byte("\n"), nil))
	}
}
