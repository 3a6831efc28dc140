package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kadm"
)

func (f *franz) offsets(asked *request) (answer, error) {
	admin, err := f.admin(asked)
	if err != nil {
		return nil, err
	}
	var all kadm.ListedOffsets
	switch asked.At.named {
	case "earliest":
		all, err = admin.ListStartOffsets(context.Background(), asked.Topic)
	case "latest":
		all, err = admin.ListEndOffsets(context.Background(), asked.Topic)
	default:
		all, err = admin.ListOffsetsAfterMilli(context.Background(), asked.At.number, asked.Topic)
	}
	if err == nil {
		err = all.Error()
	}
	if err != nil {
		return nil, err
	}
	found := map[int32]any{}
	for _, number := range asked.Partitions.numbers {
		hit, _ := all.Lookup(asked.Topic, number)
		found[number] = hit.Offset
		if asked.At.named == "" && hit.Timestamp == -1 {
			// The library returns the end offset if no record is at or after the time.
			found[number] = nil
		}
	}
	return answer{"offsets": found}, nil
}

func (f *franz) latestByAdmin(asked *request) (answer, error) {
	admin, err := f.admin(asked)
	if err != nil {
		return nil, err
	}
	all, err := admin.ListMaxTimestampOffsets(context.Background(), asked.Topic)
	if err == nil {
		err = all.Error()
	}
	if err != nil {
		return nil, err
	}
	found := map[int32]int64{}
	for _, number := range asked.Partitions.numbers {
		hit, _ := all.Lookup(asked.Topic, number)
		found[number] = hit.Offset
	}
	return answer{"offsets": found}, nil
}

func (f *franz) commit(asked *request) (answer, error) {
	admin, err := f.admin(asked)
	if err != nil {
		return nil, err
	}
	offsets := kadm.Offsets{}
	for number, wanted := range asked.Offsets {
		offsets.Add(kadm.Offset{
			Topic: asked.Topic, Partition: number, At: wanted.offset, LeaderEpoch: -1, Metadata: wanted.metadata,
		})
	}
	return answer{}, admin.CommitAllOffsets(context.Background(), asked.Group, offsets)
}

func (f *franz) committed(asked *request) (answer, error) {
	admin, err := f.admin(asked)
	if err != nil {
		return nil, err
	}
	all, err := admin.FetchOffsetsForTopics(context.Background(), asked.Group, asked.Topic)
	if err == nil {
		err = all.Error()
	}
	if err != nil {
		return nil, err
	}
	found := map[int32]any{}
	for _, number := range asked.Partitions.numbers {
		found[number] = nil
		if hit, known := all.Lookup(asked.Topic, number); known && hit.At >= 0 {
			found[number] = []any{hit.At, hit.Metadata}
		}
	}
	return answer{"committed": found}, nil
}

func (f *franz) groupOffsets(asked *request) (answer, error) {
	admin, err := f.admin(asked)
	if err != nil {
		return nil, err
	}
	all, err := admin.FetchOffsets(context.Background(), asked.Group)
	if err == nil {
		err = all.Error()
	}
	if err != nil {
		return nil, err
	}
	found := []any{}
	for _, hit := range all.Sorted() {
		found = append(found, []any{hit.Topic, hit.Partition, hit.At})
	}
	return answer{"offsets": found}, nil
}
