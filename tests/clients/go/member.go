package main

import (
	"cmp"
	"slices"
	"sync"
)

type topicPartition struct {
	topic     string
	partition int32
}

// memberLog contains the assignment and records of a group member, shared between its goroutines and the requests.
type memberLog struct {
	mutex    sync.Mutex
	assigned map[topicPartition]bool
	received []any
	failure  *string
}

func newMemberLog() *memberLog {
	return &memberLog{assigned: map[topicPartition]bool{}, received: []any{}}
}

func (log *memberLog) assign(topic string, numbers ...int32) {
	log.mutex.Lock()
	defer log.mutex.Unlock()
	for _, number := range numbers {
		log.assigned[topicPartition{topic, number}] = true
	}
}

func (log *memberLog) revoke(topic string, numbers ...int32) {
	log.mutex.Lock()
	defer log.mutex.Unlock()
	for _, number := range numbers {
		delete(log.assigned, topicPartition{topic, number})
	}
}

func (log *memberLog) receive(topic string, partition int32, offset int64) {
	log.mutex.Lock()
	defer log.mutex.Unlock()
	log.received = append(log.received, []any{topic, partition, offset})
}

func (log *memberLog) fail(err error) {
	log.mutex.Lock()
	defer log.mutex.Unlock()
	text := err.Error()
	log.failure = &text
}

func (log *memberLog) state() answer {
	log.mutex.Lock()
	defer log.mutex.Unlock()
	held := make([]topicPartition, 0, len(log.assigned))
	for part := range log.assigned {
		held = append(held, part)
	}
	slices.SortFunc(held, func(one, other topicPartition) int {
		return cmp.Or(cmp.Compare(one.topic, other.topic), cmp.Compare(one.partition, other.partition))
	})
	shown := []any{}
	for _, part := range held {
		shown = append(shown, []any{part.topic, part.partition})
	}
	return answer{"assignment": shown, "received": slices.Clone(log.received), "failure": log.failure}
}
