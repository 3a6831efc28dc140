package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// transactional returns the producer with the request's transactional id, which gets its epoch when it is created.
func (f *franz) transactional(asked *request) (*kgo.Client, error) {
	if known, found := f.producers[asked.ID]; found {
		return known, nil
	}
	made, err := f.open(asked.Bootstrap, append(franzProducer(), kgo.TransactionalID(asked.ID))...)
	if err != nil {
		return nil, err
	}
	limit, cancel := within(30 * time.Second)
	defer cancel()
	if _, _, err := made.ProducerID(limit); err != nil {
		made.Close()
		return nil, err
	}
	f.producers[asked.ID] = made
	return made, nil
}

func (f *franz) transactionOpen(asked *request) (answer, error) {
	client, err := f.transactional(asked)
	if err != nil {
		return nil, err
	}
	if err := client.BeginTransaction(); err != nil {
		return nil, err
	}
	records := franzRecords(asked)
	for _, err := range sendFranz(client, records) {
		if err != nil {
			// The error is returned; the transaction must end before the next one can begin.
			_ = client.EndTransaction(context.Background(), kgo.TryAbort)
			return nil, err
		}
	}
	results := []any{}
	for _, sent := range records {
		results = append(results, place(sent.Partition, sent.Offset))
	}
	return answer{"results": results}, nil
}

func (f *franz) transactionEnd(asked *request) (answer, error) {
	client, err := f.transactional(asked)
	if err != nil {
		return nil, err
	}
	return answer{}, client.EndTransaction(context.Background(), asked.End == "commit")
}

func (f *franz) transaction(asked *request) (answer, error) {
	sent, err := f.transactionOpen(asked)
	if err != nil {
		return nil, err
	}
	_, err = f.transactionEnd(asked)
	return sent, err
}
