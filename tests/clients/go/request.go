package main

import (
	"encoding/json"
	"fmt"
	"time"
)

// request contains the arguments of all verbs; missing arguments have default values.
type request struct {
	Do        string `json:"do"`
	Bootstrap string `json:"bootstrap"`
	Topic     string `json:"topic"`

	Records         []record `json:"records"`
	Codec           string   `json:"codec"`
	Acks            string   `json:"acks"`
	Idempotent      bool     `json:"idempotent"`
	MaxRequestBytes int      `json:"max_request_bytes"`

	Partitions partitions `json:"partitions"`
	Start      position   `json:"start"`
	At         position   `json:"at"`
	Count      int        `json:"count"`
	Reset      string     `json:"reset"`
	Isolation  string     `json:"isolation"`
	TimeoutS   float64    `json:"timeout_s"`

	Group            string             `json:"group"`
	Offsets          map[int32]noted    `json:"offsets"`
	Member           string             `json:"member"`
	Topics           []string           `json:"topics"`
	Strategy         string             `json:"strategy"`
	Instance         string             `json:"instance"`
	SessionTimeoutMs int                `json:"session_timeout_ms"`
	Replication      int16              `json:"replication"`
	Configs          map[string]*string `json:"configs"`
	Total            int                `json:"total"`
	Before           map[int32]int64    `json:"before"`

	ID  string `json:"id"`
	End string `json:"end"`
}

func newRequest() *request {
	return &request{
		Codec:            "none",
		Acks:             "all",
		MaxRequestBytes:  1_048_576,
		Reset:            "none",
		Isolation:        "read_uncommitted",
		TimeoutS:         20,
		Strategy:         "range",
		SessionTimeoutMs: 6000,
		Replication:      1,
		End:              "commit",
	}
}

func (asked *request) timeout() time.Duration {
	return time.Duration(asked.TimeoutS * float64(time.Second))
}

func (asked *request) sessionTimeout() time.Duration {
	return time.Duration(asked.SessionTimeoutMs) * time.Millisecond
}

func (asked *request) readCommitted() bool {
	return asked.Isolation == "read_committed"
}

// record is a record to be produced; without a partition, the client's partitioner selects one.
type record struct {
	Key       *string  `json:"key"`
	Value     *string  `json:"value"`
	Partition *int32   `json:"partition"`
	Timestamp *int64   `json:"timestamp"`
	Headers   []header `json:"headers"`
}

type header struct {
	name  string
	value *string
}

func (h *header) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&h.name, &h.value})
}

// noted is an offset with its metadata.
type noted struct {
	offset   int64
	metadata string
}

func (n *noted) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&n.offset, &n.metadata})
}

// partitions is a list of partitions, or the number of partitions of a topic.
type partitions struct {
	numbers []int32
	count   int32
}

func (p *partitions) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &p.count) == nil {
		return nil
	}
	return json.Unmarshal(data, &p.numbers)
}

// position is "earliest", "latest", or a number: an offset or a timestamp in ms.
type position struct {
	named  string
	number int64
}

func (p *position) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &p.number) == nil {
		return nil
	}
	if err := json.Unmarshal(data, &p.named); err != nil {
		return err
	}
	if p.named != "earliest" && p.named != "latest" {
		return fmt.Errorf("no such position: %s", p.named)
	}
	return nil
}
